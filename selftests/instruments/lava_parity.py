"""The same benchmark measured at the desk, by a lab-host job and by a native job, side by side.

After `make lava-lab`. Prints a Markdown table of mean (min-max) of every figure, and whether all three
ways gave the records the same identity. It starts that many runs each way, one after the other.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from statistics import mean

from evmperf_virtual import lavalab as labs

from evmperf.model.results import Result
from selftests.instruments import command
from selftests.support.spools import cases_of

WAYS = ("desk", "host", "native")


def measure(way: str, benchmark: str, results: Path) -> None:
    """One run; what it prints is shown."""
    if way == "desk":
        board = labs.folder() / "boards" / "virtual.yaml"
        command = ["pytest", "-q", "--lg-env", str(board), "-k", f"[{benchmark}-"]
        command += [f"--results={results / way}"]
    else:
        command = ["evmperf.commands.cli.main", "lava", "submit", "virtual", "--kind", way, "-k", benchmark]
        command += ["--wait", "--import", "--results", str(results / way)]
    subprocess.run([sys.executable, "-m", *command], check=True, stdout=sys.stderr)


def identity(result: Result) -> str:
    """What tells a record from another, beside when it was measured and what came out."""
    conditions = {k: v for k, v in result.conditions.items() if k != "fetched_again"}
    figures = sorted({(s.metric, s.unit, s.repetition) for s in result.samples})
    return repr((result.version, result.params, result.profile, result.tools, conditions, figures))


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print the table."""
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("benchmark", help="one benchmark, as `emmc_vfat`")
    parser.add_argument("count", type=int, nargs="?", default=3, help="runs of each way (default: 3)")
    options = parser.parse_args(words)
    values: dict[tuple[str, str, str], dict[str, list[float]]] = defaultdict(dict)
    identities: dict[str, set[str]] = defaultdict(set)
    with tempfile.TemporaryDirectory() as folder:
        before = set(runs("host", Path(folder)))
        for _ in range(options.count):
            for way in WAYS:
                measure(way, options.benchmark, Path(folder))
        for way in WAYS:
            for run in sorted(set(runs(way, Path(folder))) - before):
                for result in cases_of(run):
                    identities[result.case].add(identity(result))
                    for sample in result.samples:
                        row = values[result.case, sample.metric, sample.unit]
                        row.setdefault(way, []).append(sample.value)
    print("| case | metric | unit | desk | lab-host job | native job | same identity |")
    print("|---|---|---|---|---|---|---|")
    for (case, metric, unit), row in values.items():
        cells = [f"{mean(v):.2f} ({min(v):.2f}-{max(v):.2f})" for v in map(row.get, WAYS) if v]
        same = "yes" if len(identities[case]) == 1 else "no"
        print(f"| {case} | {metric} | {unit} | {' | '.join(cells)} | {same} |")


def runs(way: str, folder: Path) -> list[Path]:
    """Folders of runs; a lab-host job keeps its own on the lab's host."""
    where = labs.folder() / "results" if way == "host" else folder / way
    return [path.parent for path in where.glob("*/run.json")]


if __name__ == "__main__":
    main()
