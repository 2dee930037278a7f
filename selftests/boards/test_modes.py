"""The modes that TI expects: data against TI's own script, and what is said of a board in a lesser one."""

import fnmatch
import re
from pathlib import Path

import pytest
import yaml

from evmperf.boards import board as boards
from evmperf.boards import modes
from evmperf.measure.state import buses
from evmperf.model.results import Sample
from evmperf.model.state import State
from selftests.support import seeds
from selftests.support.spools import a_case

SCRIPT = seeds.place("real/ltp-ddt") / "newer/testcases/ddt/scripts/blk/check_mmc_speed.sh"
LANES = seeds.place("real/ltp-ddt") / "newer/testcases/ddt/scripts/pci/pcie_check_speed.sh"
LESSER = yaml.safe_load(Path(__file__).with_name("modes.yaml").read_text())
NAMES = sorted(boards.load(file).name for file in boards.files().values())


def cases_of(text):
    """The patterns of a shell `case` and what each sets: ([glob, ...], mode)."""
    found = re.findall(r"^\s*([\w*| -]+)\)\s*\n?\s*(?:expected_mode=\"|rtn=)(\w+)", text, re.MULTILINE)
    return [([one.strip() for one in globs.split("|")], mode) for globs, mode in found]


@seeds.needs("real/ltp-ddt")
@pytest.mark.parametrize(("driver", "device"), [("emmc", "emmc"), ("mmcsd", "sd")])
def test_the_data_is_what_tis_check_demands(driver, device):
    text = SCRIPT.read_text()
    part = text.split(f'"$device_type" = "{device}" ]; then')[1].split("esac")[0]
    for name in NAMES:
        demanded = [mode for globs, mode in cases_of(part) for glob in globs if fnmatch.fnmatch(name, glob)]
        ours = modes.expected(name, driver)
        if demanded:
            assert getattr(ours, "mode", None) == demanded[0], name
            line = int(re.search(r":(\d+)", ours.source)[1])
            assert demanded[0] in "".join(text.splitlines()[line - 1 : line + 2]), f"{name}: {ours.source}"
        elif not re.match("am654x-evm|j721e", name):  # from the page; a pattern that fits no whole name
            assert ours is None, name


@seeds.needs("real/ltp-ddt")
def test_the_lanes_are_tis():
    globs, count = cases_of(LANES.read_text())[0]
    names = {name for name in NAMES for glob in globs if fnmatch.fnmatch(name, glob)}
    assert len(names) > 4
    assert {modes.lanes(name) for name in names} == {int(count)}
    assert modes.lanes("am64xx-hsevm") == 1


@pytest.mark.parametrize(("board", "driver", "timing", "silicon", "times"), LESSER)
def test_a_lesser_mode_than_tis_is_said(board, driver, timing, silicon, times):
    found = modes.lesser(board, driver, timing, silicon)
    assert (found and found.times) == (times and pytest.approx(times, rel=1e-6))
    printed = f"mode: {'MMC' if driver == 'emmc' else 'SD'} {timing}\nsilicon: {silicon}\n"
    assert list(modes.lesser_modes(board, printed)) == ([(driver, found)] if found else [])


def test_contradictions_are_said():
    said = str(modes.expected("am64xx-hsevm", "emmc"))
    assert re.match(r"HS200 .*of 2022, line 37: HS400", said)


@pytest.mark.parametrize(
    ("driver", "shown", "word"),
    [
        # The host says that it cannot do HS200, as by a device tree without `mmc-hs200-1_8v`.
        ("emmc", {"mmc.ios.timing_spec": "8 (mmc DDR52)", "mmc.ext_csd": "d7", "mmc.caps2": "0x0"}, "HS200"),
        ("emmc", {"mmc.ios.timing_spec": "9 (mmc HS200)"}, ""),
        (
            "pcie",
            {f"pci.{end}.{what}_link_width": 1 for end in ("0000:00:00.0",) for what in ("max", "current")},
            "",
        ),
    ],
)
def test_a_case_in_a_lesser_mode_is_marked(driver, shown, word):
    shown = {"mmc.ios.bus_width": "3 (8 bits)", "mmc.ios.clock": "50000000 Hz", **shown}
    sample = Sample("read_throughput", 20.0, "MB/s", 0, 1)
    result = a_case(driver=driver, samples=(sample,), state=State(shown=shown))
    reasons = [f.reason for f in buses.findings(result, "am64xx-hsevm") if "TI's own check" in f.reason]
    assert [word in reason for reason in reasons] == ([True] if word else [])


@pytest.mark.parametrize(("board", "said"), [("j784s4-evm", True), ("am64xx-hsevm", False)])
def test_lanes_that_a_device_tree_hides_are_said(board, said):
    root, disk = "pci.0000:00:00.0.", "pci.0000:01:00.0."
    shown = {f"{root}max_link_width": 1, f"{disk}max_link_width": 4}
    shown |= {f"{end}current_link_width": 1 for end in (root, disk)}
    shown |= {f"{end}current_link_speed": "8.0 GT/s PCIe" for end in (root, disk)}
    samples = (Sample("read_throughput", 20.0, "MB/s", 0, 1),)
    result = a_case(benchmark="pcie_nvme_ext4", driver="pcie", samples=samples, state=State(shown=shown))
    assert [f.size for f in buses.findings(result, board)] == ([4.0] if said else [])


AUDIO = seeds.place("real/ltp-ddt") / "newer/testcases/ddt/scripts/common/run_alsa_perf_test.sh"


@seeds.needs("real/ltp-ddt")
def test_board_files_have_tis_audio_periods():
    cases = re.findall(r"^([\w*|]+)\)\s*PERIODSIZE=(\d+)", AUDIO.read_text(), re.MULTILINE)
    assert len(cases) == 2
    for file in boards.files().values():
        board = boards.load(file)
        if board.options.alsa.period_frames and not board.is_virtual:
            soc = re.split(r"[-_]", board.name)[0]
            found = [int(n) for globs, n in cases for glob in globs.split("|") if fnmatch.fnmatch(soc, glob)]
            # Without a match the program's own default counts.
            assert board.options.alsa.period_frames == (found or [64])[0], file.name
