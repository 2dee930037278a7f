"""The promise of docs/add-a-benchmark.md: a driver that no guide has, with a tool of its own, is its
benchmark's module, its recordings, its tests and one word.

CAN's are taken out of a copy, where nothing is left of it, and nothing else is missing.
"""

import contextlib
import io
import json
import re
import tempfile
from pathlib import Path

import numpy as np

from evmperf.benchmarks import catalogue
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import read_records, read_run
from evmperf.publish.influx.lines import RunLines
from selftests.support import copied, runs

WORD = "can: has a CAN controller\n"
VOCABULARY = "evmperf/boards/features.yaml"
FILES = (
    *(f"evmperf/benchmarks/tables/can_loopback.{end}" for end in ("py", "sh", "yaml")),
    *("selftests/tools/test_can.py", "tests/test_can.py"),
)
"""With selftests/data/can all that CAN consists of."""
# The list of numbers that a tool prints once names the parser.
MENTIONED = re.compile(r"can_loopback(?!:transfer)|cangen|driver-can")


def said(*arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = main(list(arguments))
    return text.getvalue() if status == 0 else f"status {status}"


def appearances():
    """Where a driver's benchmarks can be seen, by the driver's name in each."""
    names = [name for name, found in catalogue.benchmarks().items() if found.driver in ("can", "emmc")]
    with tempfile.TemporaryDirectory() as folder:
        run = runs.write(Path(folder), runs.results(np.random.default_rng(1), names))
        lines = RunLines(read_run(run))
        influx = "\n".join(line for record in read_records(run) for line in lines.of(record))
        jobs = said("lava", "render", "virtual", "--kind", "native", "-k", "can or emmc_raw_fio")
        guide = said("guide", "--release", "12.00", "--from", folder)
        report = said("show", str(run), "--report") and (run / "report.html").read_text()
    return {
        driver: {
            "list": re.findall(rf"^({driver}_\S+)", said("benchmark", "list"), re.MULTILINE),
            "job": re.findall(rf"^ *evm_(?:measure|shared) '?({driver}[_ ][^']*)", jobs, re.MULTILINE),
            "guide": re.findall(rf"^({driver.upper()} .*)\n[-=~^\"+]+$", guide, re.MULTILINE),
            "report": sorted(set(re.findall(rf"\b{driver}_\w+", report))),
            "influx": sorted(set(re.findall(rf"^samples,benchmark=({driver}_\w+),", influx, re.MULTILINE))),
        }
        for driver in ("can", "emmc")
    }


def mentions(folder):
    """Files that know of CAN, but for prose and the recipe of the board's image."""
    return sorted(
        str(file.relative_to(folder))
        for file in folder.rglob("*")
        if file.is_file()
        and file.suffix in (".py", ".yaml", ".json", ".jinja2", ".toml")
        and file.name not in (Path(__file__).name, "variant.yaml")
        and MENTIONED.search(file.read_text())
    )


def test_a_driver_with_its_own_tool_is_its_files_and_one_word(tmp_path):
    copy = copied.copy(tmp_path / "evmperf")
    for file in (*(copy / name for name in FILES), *(copy / "selftests/data/can").iterdir()):
        file.unlink()
    for file, word in ((copy / VOCABULARY, WORD), *((board, " can,") for board in copy.glob("env/*.yaml"))):
        file.write_text(file.read_text().replace(word, ""))

    assert mentions(copy) == []
    call = "import json; from selftests.benchmarks.test_new_driver import *; print(json.dumps(appearances()))"
    without = json.loads(copied.python(copy, "-c", call).splitlines()[-1])
    within = appearances()
    assert all(within["can"].values()), within["can"]
    assert not any(without["can"].values()), without["can"]
    assert all(within["emmc"].values()), "this test looks in the wrong places"
    assert within["emmc"] == without["emmc"]
