"""The promise of docs/add-a-benchmark.md, done in a copy: a driver that no guide has, with a tool
of its own, is its benchmark's module, its recordings, its tests and one word.

CAN's are taken out of the copy and put in again.
"""

import json
import re
import shutil
from pathlib import Path

import pytest

from selftests.support import copied
from selftests.support.copied import python

WORD = "can: has a CAN controller\n"
VOCABULARY = "evmperf/boards/features.yaml"
FILES = (
    "evmperf/benchmarks/tables/can_loopback.py",
    "evmperf/benchmarks/tables/can_loopback.sh",
    "evmperf/benchmarks/tables/can_loopback.yaml",
    "selftests/data/can",
    "selftests/tools/test_can.py",
    "tests/test_can.py",
)
# The list of numbers that a tool prints once names the parser.
MENTIONED = re.compile(r"can_loopback(?!:transfer)|cangen|driver-can")
PROBE = """
import contextlib
import io
import json
import sys
import tempfile
from pathlib import Path
import numpy as np
from evmperf.benchmarks import catalogue
from evmperf.commands.cli.main import main
from evmperf.publish.influx.lines import RunLines
from evmperf.measure.runs.spool import read_records, read_run
from selftests.support import runs

def said(*arguments):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        status = main(list(arguments))
    return text.getvalue() if status == 0 else f"status {status}"

names = [name for name, found in catalogue.benchmarks().items() if found.driver in ("can", "emmc")]
with tempfile.TemporaryDirectory() as folder:
    run = runs.write(Path(folder), runs.results(np.random.default_rng(1), names))
    lines = RunLines(read_run(run))
    json.dump({
        "list": said("benchmark", "list"),
        "job": said("lava", "render", "virtual", "--kind", "native", "-k", "can or emmc_raw_fio"),
        "guide": said("guide", "--release", "12.00", "--from", folder),
        "report": said("show", str(run), "--report") and (run / "report.html").read_text(),
        "influx": [line for record in read_records(run) for line in lines.of(record)],
    }, sys.stdout)
"""


@pytest.fixture
def copy(tmp_path):
    """A copy of the checkout."""
    return copied.copy(tmp_path / "evmperf")


def appearances(folder):
    """Where a driver's benchmarks can be seen, by the driver's name in each."""
    found = json.loads(python(folder, "-c", PROBE))
    return {
        driver: {
            "list": re.findall(rf"^({driver}_\S+)", found["list"], re.MULTILINE),
            "job": re.findall(rf"^ *evm_(?:measure|shared) '?({driver}[_ ][^']*)", found["job"], re.M),
            "guide": re.findall(rf"^({driver.upper()} .*)\n[-=~^\"+]+$", found["guide"], re.M),
            "report": sorted(set(re.findall(rf"\b{driver}_\w+", found["report"]))),
            "influx": sorted(
                {
                    m
                    for line in found["influx"]
                    for m in re.findall(rf"^samples,benchmark=({driver}_\w+),", line)
                }
            ),
        }
        for driver in ("can", "emmc")
    }


def boards(folder, change):
    for file in (folder / "env").glob("*.yaml"):
        file.write_text(change(file.read_text()))


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


def test_a_driver_with_its_own_tool_is_its_files_and_one_word(copy):
    kept = copy.parent / "kept"
    listed = {file: file.read_text() for file in (copy / "env").glob("*.yaml")}
    vocabulary = (copy / VOCABULARY).read_text()
    for name in FILES:
        (kept / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.move(copy / name, kept / name)
    (copy / VOCABULARY).write_text(vocabulary.replace(WORD, ""))
    boards(copy, lambda text: text.replace(" can,", ""))

    assert mentions(copy) == []
    without = appearances(copy)
    assert {where: seen for where, seen in without["can"].items() if seen} == {}
    assert all(without["emmc"].values()), "this test looks in the wrong places"

    for name in FILES:
        shutil.move(kept / name, copy / name)
    (copy / VOCABULARY).write_text(vocabulary)
    for file, text in listed.items():
        file.write_text(text)

    within = appearances(copy)
    assert all(within["can"].values()), within["can"]
    assert within["emmc"] == without["emmc"]
    said = python(
        copy,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "can_loopback or can/",
        "selftests/benchmarks/test_catalogue.py",
        "selftests/benchmarks/test_steps.py",
        "selftests/tools/test_recordings.py",
    )
    assert int(re.search(r"(\d+) passed", said)[1]) >= len(FILES)
