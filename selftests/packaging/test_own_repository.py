"""A lab's own repository: the wheel in an empty environment, and no checkout."""

import json
import shutil

import pytest

from evmperf.measure.runs.spool import read_results
from selftests.support.wheel import ROOT, run

OWN_BENCHMARK = '''
"""How long the board takes to read its kernel's log."""

from dataclasses import replace

from evmperf.benchmarks.tables import disks

VFAT = next(one for one in disks.BENCHMARKS if one.name == "emmc_vfat")
BENCHMARK = replace(VFAT, name="emmc_ours", title="Our table")
'''

OWN_TEST = """
import pytest

from evmperf.model.units import Unit

pytestmark = pytest.mark.lg_feature("emmc")


def test_ours(board, shell, console, record):
    reply = shell.run("cat /proc/uptime", timeout_s=10)
    record("uptime", [float(reply.text.split()[0])], Unit.SECOND)
    for wrong in ([], [1.0, float("nan")], [1e19]):
        with pytest.raises(ValueError, match="finite"):
            record("uptime", wrong, Unit.SECOND)
    shell.run("echo we were here > /dev/console", timeout_s=10)
    assert "we were here" in console.text()
    assert board.name == "virtual-evm"


def test_ours_in_uboot(uboot):
    assert "U-Boot" in uboot.run("version", timeout_s=10).text
"""


@pytest.fixture
def lab(tmp_path):
    """A lab's own repository: a board file, a benchmark and a test, named like some of evmperf."""
    for folder in ("env", "tests", "benchmarks"):
        (tmp_path / folder).mkdir()
    shutil.copy(ROOT / "env" / "virtual.yaml", tmp_path / "env" / "my-board.yaml")
    (tmp_path / "benchmarks" / "emmc_ours.py").write_text(OWN_BENCHMARK)
    (tmp_path / "tests" / "test_emmc.py").write_text(OWN_TEST)
    return tmp_path


def test_the_wheel_brings_everything_that_measuring_needs(installed, lab):
    listed = run(installed / "evmperf", "benchmark", "list", "--board", "my-board", "--json", cwd=lab)
    assert listed.returncode == 0, listed.stderr
    rows = {row["id"]: row for row in json.loads(listed.stdout)}
    assert rows["emmc_ext4_fio_1g"]["runnable"]
    assert rows["emmc_ours"]["runnable"]
    module = run(installed / "python", "-m", "evmperf", "--version", cwd=lab)
    assert module.returncode == 0, module.stderr
    # Templates, tables, baselines, LAVA's device types: each is read by one of these.
    for words in (
        ["lava", "render", "am64x", "-k", "emmc_vfat"],
        ["guide", "--release", "11.01", "--from", "baselines"],
        ["gitlab", "pipeline", "--boards", "am64x"],
        ["help", "boot"],
    ):
        done = run(installed / "evmperf", *words, cwd=lab)
        assert done.returncode == 0, (words, done.stderr)


@pytest.mark.virtual_evm
def test_a_board_is_measured_from_there(installed, lab):
    rows = "(102400 and (emmc_vfat or emmc_ours)) or test_ours"
    words = ("pytest", "--lg-env", "my-board.yaml", "-k", rows)
    without = run(installed / words[0], *words[1:], cwd=lab)
    assert without.returncode != 0
    assert "make setup" in without.stdout
    pip = (installed / "python", "-m", "pip", "install", "--quiet", "--no-deps")
    assert run(*pip, "--editable", ROOT / "virtual-evm", cwd=lab).returncode == 0
    for folder in (lab / "results").iterdir():
        shutil.rmtree(folder)
    done = run(installed / words[0], *words[1:], cwd=lab)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (lab / "results").glob("*/run.json")
    assert json.loads(found.read_text())["facts"]["board_file"] == "my-board.yaml"
    results = {r.benchmark: r for r in read_results(found.parent)}
    assert 0 < results["ours"].values("uptime")[0] < 600
    assert results["emmc_vfat"].status == results["emmc_ours"].status == "measured"
