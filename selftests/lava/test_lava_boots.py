"""Boot times from a recorded LAVA log: two power cycles of the virtual EVM, kernel chatter cut."""

from pathlib import Path

import pytest

from evmperf.benchmarks.families.boot import readings
from evmperf.boards import board as boards
from evmperf.boards.console.marks import Phase
from evmperf.commands.lava import joblog
from evmperf.commands.lava.render import JobConsole
from evmperf.commands.lava.replay import LoggedJob, find_boots
from evmperf.model.errors import BoardError

BOARD = boards.load(boards.find("virtual"))
CYCLES = ["", "init=/bin/sh"]
LOG = (Path(__file__).parents[1] / "data/lava/boots.log").read_text()


def found(text=LOG):
    return find_boots(joblog.parse(text, "log"), JobConsole(BOARD), CYCLES)


def test_the_published_figure_is_between_lavas_stamps():
    (first, second), others = found()
    assert ([first.kernel_arguments, second.kernel_arguments], others) == (CYCLES, [])
    # "Starting kernel ..." 07:23:05.006722, "Matched prompt ... login: " 07:23:19.824412
    assert {r.metric: r.value for r in readings(first)}["boot_time"] == pytest.approx(14.81769)
    assert {r.error for r in readings(first)} == {0.15}, "stated, so it is not refused"
    # 07:23:24.501681, 07:23:32.712876
    assert {r.metric: r.value for r in readings(second)}["boot_time"] == pytest.approx(8.211195)


def test_the_power_is_on_when_the_last_switching_has_ended():
    boot = found()[0][0]
    # "Returned 0" of the second command at 07:23:02.494703; the log is in UTC.
    assert boot.marks[Phase.POWER_ON].wall_ns == 1795245782_494703_000
    assert boot.marks[Phase.UBOOT_BANNER].text == "U-Boot 2025.01 (Jan 01 2025 - 00:00:00 +0000)"
    assert Phase.FIRST_OUTPUT not in boot.marks, "LAVA does not read while it switches"
    assert boot.marks[Phase.PROMPT].error_s == 0.15


def test_cycles_come_by_their_kernel_arguments():
    log = LoggedJob(BOARD, 0, *found(), {}, None)
    assert log.cold_boot("init=/bin/sh").kernel_arguments == "init=/bin/sh"
    assert log.cold_boot("").kernel_arguments == ""
    with pytest.raises(BoardError, match="no further power cycle"):
        log.cold_boot("")
    assert len(log.boots()) == 2
    assert log.boots() == []


def test_a_cycle_that_lava_repeated_is_a_failed_one():
    lines = LOG.splitlines(keepends=True)
    start = next(n for n, line in enumerate(lines) if "start: 4.4.1 reset-device" in line)
    prompt = next(n for n, line in enumerate(lines) if "Matched prompt #11" in line)
    again = lines[:prompt] + lines[start:]
    (first, second, third), _ = found("".join(again))
    assert [one.kernel_arguments for one in (first, second, third)] == [CYCLES[0], *CYCLES]
    assert isinstance(first.error, BoardError)
    assert second.error is None


def test_a_prompt_before_the_kernel_is_no_boot():
    text = LOG.replace("Starting kernel", "Staring kernel").replace("[    0.000000]", "[    0.1]")
    assert all(Phase.PROMPT not in boot.marks for boot in found(text)[0])


def test_no_line_of_the_boards_is_a_power_cycle():
    first, *rest = LOG.splitlines(keepends=True)
    forged = [line.replace('"lvl": "debug"', '"lvl": "target"') for line in rest if "reset-device" in line]
    assert len(forged) == 4
    (boots, _), (forgeries, _) = found(), found("".join([first, *rest[:99], *forged, *rest[99:]]))
    assert [boot.started_ns for boot in forgeries] == [boot.started_ns for boot in boots]
