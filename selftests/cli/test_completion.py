"""What a shell completes: asked as argcomplete's shell functions ask."""

import os
import subprocess
import sys
from pathlib import Path

import pytest


def completed(line, folder):
    answer = folder / "answer"
    environment = os.environ | {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "_ARGCOMPLETE_IFS": "\n",
    }
    evmperf = Path(sys.executable).with_name("evmperf")
    subprocess.run([evmperf], cwd=folder, env=environment, check=False, timeout=60)
    return [word.strip() for word in answer.read_text().split("\n")]


@pytest.fixture
def folder(tmp_path):
    for name in ("my-am64x-20261101T010203Z-ab12", "virtual-evm-20261102T010203Z-cd34"):
        run = tmp_path / "results" / name
        run.mkdir(parents=True)
        (run / "run.json").write_text("{}")
    return tmp_path


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("evmperf comp", "compare"),
        ("evmperf doctor am6", "am64x"),
        ("evmperf benchmark list --board virt", "virtual-rt"),
        ("evmperf show my", "my-am64x-20261101T010203Z-ab12"),
        ("evmperf compare la", "last"),
        ("evmperf compare last --b virt", "virtual-evm-20261102T010203Z-cd34"),
        ("evmperf history my", "my-am64x"),
        ("evmperf history my-am64x emmc_e", "emmc_ext4"),
        ("evmperf history my-am64x emmc_ext4 write_t", "write_throughput"),
        ("evmperf check --accept emmc_ext", "emmc_ext4/"),
        ("evmperf ab virtual --metric emmc_raw_fio_1g/4", "emmc_raw_fio_1g/4m/"),
        ("evmperf ab virtual --metric emmc_raw_fio_1g/4m/w", "emmc_raw_fio_1g/4m/write_throughput"),
        ("evmperf ab virtual --metric nothing/", ""),
    ],
)
def test_names_are_completed(folder, line, word):
    assert word in completed(line, folder)


def test_only_what_the_benchmark_has_is_offered(folder):
    assert completed("evmperf history my-am64x emmc_ext4 zz", folder) == [""]
