"""A run of absurd numbers is named and left out; each file of a run is read once."""

import json
import os
import sys
from collections import Counter

import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import spool
from evmperf.model.exits import ExitStatus
from selftests.support import programs, runs

ABSURD = {
    "when": ("run.json", ["started_ns"], 10**30),
    "before": ("run.json", ["started_ns"], -(10**18)),
    "after": ("run.json", ["ended_ns"], 9 * 10**18),
    "value": ("results.jsonl", ["samples", 0, "value"], 1e308),
    "tiny": ("results.jsonl", ["samples", 0, "value"], 5e-324),
    "time": ("results.jsonl", ["samples", 0, "time_ns"], 10**30),
    "error": ("results.jsonl", ["samples", 0, "error"], -1e308),
    "took": ("results.jsonl", ["duration_s"], 1e308),
}
COMMANDS = """
history --results {results}
history am64xx-hsevm --results {results}
history am64xx-hsevm emmc_ext4 --results {results}
check am64xx-hsevm-0003 --against last:3 --results {results}
compare am64xx-hsevm-0001 am64xx-hsevm-0003 --results {results}
site -o {out}/site --results {results}
guide --release newest --from {results} -o {out}/guide.rst
export --from {results} --parquet {out}/x
export --from {results} --openmetrics {out}/x
export --from {results} --junit {out}/x
export --from {results} --csv {out}/x
history --from history
"""
READERS = ("guide", "export")
"""Commands that read the records of every run."""
JUDGING = ("site", "history am64xx-hsevm")
"""Commands that read no more of them than judging does."""


@pytest.fixture(params=ABSURD)
def absurd(request, tmp_path):
    """A folder of four nights, the second with one absurd number; and the file that has it."""
    runs.history(tmp_path / "results", nights=4)
    name, way, value = ABSURD[request.param]
    file = tmp_path / "results/am64xx-hsevm-0001" / name
    first, _, rest = (file.read_text(), "", "") if name == "run.json" else file.read_text().partition("\n")
    said = json.loads(first)
    part = said
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    file.write_text(f"{json.dumps(said)}\n{rest}")
    return request.param, file


def test_every_command_does_the_rest(absurd, tmp_path, capsys, caplog, monkeypatch):
    what, file = absurd
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))
    for line in COMMANDS.strip().splitlines():
        if what in ("when", "before", "after") and line.startswith("compare"):
            continue  # it is the run that is compared
        spool.leave_out.cache_clear()
        caplog.clear()
        status = main([word.format(results=tmp_path / "results", out=tmp_path) for word in line.split()])
        said = capsys.readouterr()
        whole = file.name == "run.json" or (what == "value" and line.startswith(JUDGING))
        assert status in (ExitStatus.OK, ExitStatus.UNDECIDED, ExitStatus.NOTHING, ExitStatus.FAILED), said
        if what != "tiny" and (whole or line.startswith(READERS)) and "--from history" not in line:
            assert str(file.parent) in caplog.text + said.err, line


# A lock is no reading: whether a run is still measured is asked of its records' file.
COUNTING = """
import atexit, json, os, sys
opened = []
def note(event, words):
    if event == "open" and "/am64xx-" in str(words[0]) and words[2] & os.O_ACCMODE == os.O_RDONLY:
        frame = sys._getframe(1)
        while frame and frame.f_code.co_name != "is_live":
            frame = frame.f_back
        if not frame and not words[2] & os.O_DIRECTORY:
            opened.append(str(words[0]))
atexit.register(lambda: print("\\n" + json.dumps(opened)))
sys.addaudithook(note)
from evmperf.commands.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", ["check", "show", "why", "compare last~1 last --facts", "history"])
def test_a_command_reads_each_file_of_a_run_once(tmp_path, words):
    generator = runs.history(tmp_path / "results", nights=8)
    runs.write(tmp_path / "results", runs.results(generator), number=8)
    process = programs.run(
        sys.executable,
        "-c",
        COUNTING,
        *words.split(),
        cwd=tmp_path,
        environment={name: value for name, value in os.environ.items() if name != "EVMPERF_HISTORY"},
    )
    assert process.returncode in (0, 6), process.stdout + process.stderr
    counts = Counter(json.loads(process.stdout.splitlines()[-1]))
    assert sum(name.endswith("run.json") for name in counts) == 9, counts
    assert set(counts.values()) == {1}, counts.most_common(3)
