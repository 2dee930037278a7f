"""Where the time of a boot went: phases, what took longest in them, and how far the clocks agree."""

import re

import pytest

from evmperf.boards.console import tree
from evmperf.boards.console.marks import Phase, find
from evmperf.boards.console.record import POWER_ON, ConsoleRecord
from evmperf.model.errors import RefusedOutput

PROMPT = r"login: "
MS = 1_000_000


def records(*said):
    """Records of a console: milliseconds since power-on, and text."""
    board = [ConsoleRecord(ms * MS, ms * MS, "<", text.encode()) for ms, text in said]
    return [ConsoleRecord(0, 0, "#", POWER_ON.encode()), *board]


def grown(*said, units=()):
    found = records(*said)
    return tree.grow(found, find(found, PROMPT), units)


LOADER = (
    (10, "U-Boot 2025.01 (Jan 01 2025)\r\n"),
    (400, "DRAM:  2 GiB\r\n"),
    (2000, "Hit any key to stop autoboot: 0\r\n"),
    (2100, "\r\nStarting kernel ...\r\n"),
)
KERNEL = (
    (3000, "[    0.000000] Booting Linux\r\n[    0.500000] printk: console [ttyS2] enabled\r\n"),
    (3100, "[    0.600000] mmc0: new card\r\n"),
    (4200, "[    1.700000] EXT4-fs (mmcblk1p2): mounted filesystem\r\n"),
    (4300, "[    1.800000] Run /sbin/init as init process\r\n"),
    (6000, "Starting services\r\n"),
    (6500, "\r\nboard login: "),
)


def told(parts):
    return [(str(part.phase), part.name, round(part.seconds, 3), part.clock) for part in parts]


def test_the_longest_are_named_by_the_kernels_clock_where_it_is_there():
    found = grown(*LOADER, *KERNEL).longest(Phase.STARTING_KERNEL, Phase.PROMPT)
    assert told(found)[:3] == [
        ("init_started", "after 'Run /sbin/init as init process'", 1.7, "console"),
        ("first_kernel_line", "after 'mmc0: new card'", 1.1, "kernel"),
        ("starting_kernel", "after 'Starting kernel ...'", 0.9, "console"),
    ]
    assert len(found) == 5
    (loader, *_) = grown(*LOADER, *KERNEL).longest(Phase.UBOOT_BANNER, Phase.STARTING_KERNEL)
    assert told([loader]) == [("uboot_banner", "after 'DRAM:  2 GiB'", 1.6, "console")]


def test_initcalls_and_bootstages_and_units_are_named_where_they_are_timed():
    report = (
        (2050, "Timer summary in microseconds (2 records):\r\n       Mark    Elapsed  Stage\r\n"),
        (2060, "          0          0  reset\r\n  1,200,000  1,200,000  eth_common_init\r\n\r\n"),
        (2070, "Accumulated time:\r\n"),
    )
    calls = (
        (3200, "[    0.650000] initcall am65_cpsw_init+0x0/0x20 returned 0 after 312000 usecs\r\n"),
        (3300, "[    0.660000] initcall deferred_probe+0x0/0x20 [mod] returned -19 after 45 usecs\r\n"),
    )
    found = grown(
        *LOADER[:3], *report, LOADER[3], *KERNEL[:2], *calls, *KERNEL[2:], units=[("a.service", 9.5)]
    )
    every = told(found.longest(Phase.UBOOT_BANNER, Phase.PROMPT, 99))
    assert ("first_kernel_line", "initcall am65_cpsw_init", 0.312, "kernel") in every
    assert ("autoboot", "eth_common_init", 1.2, "U-Boot") in every
    assert every[0] == ("init_started", "a.service", 9.5, "systemd, side by side")
    assert not any("initcall" in note or "BOOTSTAGE" in note for note in found.notes)


STAGES = """\
Timer summary in microseconds (5 records):
       Mark    Elapsed  Stage
          0          0  reset
    583,290    583,290  board_init_f
  2,348,898  1,765,608  board_init_r

Accumulated time:
                57,678  dm_f
                69,883  dm_r
"""


@pytest.mark.parametrize("lost", range(2, 9))
def test_a_report_of_stages_with_fewer_records_than_it_states_is_cut(lost):
    lines = STAGES.splitlines(keepends=True)
    assert len(tree.bootstages(STAGES)) == 3
    for damaged in (lines[:lost] + lines[lost + 1 :], lines[:lost]):
        with pytest.raises(RefusedOutput):
            tree.bootstages("".join(damaged))
    with pytest.raises(RefusedOutput):
        tree.bootstages(STAGES.replace("board_init_f\n", "board_init_f[  123.456789] mmc0: error -110\n"))


def test_initcalls_that_the_console_did_not_show_are_in_the_kernels_log():
    log = (
        "[    0.200000] initcall mmc_init+0x0/0x20 returned 0 after 700000 usecs\n"
        "[    1.800000] Run /sbin/init as init process\n"
        "[    2.000000] initcall late_module+0x0/0x20 returned 0 after 900000 usecs\n"
    )
    found = records(*LOADER, *KERNEL)
    grew = tree.grow(found, find(found, PROMPT), kernel_log=log)
    calls = [part for part in grew.parts if part.name.startswith("initcall")]
    assert told(calls) == [("first_kernel_line", "initcall mmc_init", 0.7, "kernel")]
    assert not any("initcalls" in note for note in grew.notes)


def test_what_is_missing_is_said():
    quiet = grown(*LOADER, (4000, "\r\nboard login: ")).notes
    assert len(quiet) == 4
    assert quiet[0].startswith("no messages of spl_banner, tf_a, op_tee, a53_spl")
    assert "CONFIG_BOOTSTAGE_REPORT" in quiet[3]


def test_the_clocks_are_held_against_each_other_and_a_late_console_is_said():
    fast = [(3000 + n * 100, f"[{n * 0.11:12.6f}] message {n}\r\n") for n in range(30)]
    notes = grown(*LOADER, *fast, (9000, "\r\nboard login: ")).notes
    assert any("1.1000 s per second" in note for note in notes)
    late = grown(*LOADER, *KERNEL).notes
    assert any(re.search("0.500 s late: 'Booting Linux' .*0.000 s", note) for note in late)
    even = [(3000 + n * 100, f"[{n * 0.1:12.6f}] message {n}\r\n") for n in range(30)]
    assert not any("late" in note for note in grown(*LOADER, *even, (9000, "\r\nboard login: ")).notes)
    at_once = [(3000, text) for _, text in even]  # which tells no rate
    notes = grown(*LOADER, *at_once, (3000, "\r\nboard login: ")).notes
    assert not any("clock runs" in note for note in notes)


def test_a_root_that_is_mounted_after_init_counts_once():
    ram_disk = (
        (3000, "[    0.000000] Booting Linux\r\n[    0.100000] Run /init as init process\r\n"),
        (5000, "[    2.100000] EXT4-fs (vda1): mounted filesystem\r\n"),
        (6000, "\r\nboard login: "),
    )
    found = grown(*LOADER, *ram_disk)
    names = [part.name for part in found.longest(Phase.STARTING_KERNEL, Phase.PROMPT, 99)]
    assert len(names) == len(set(names))
    assert sum(found.phases.values()) == pytest.approx(6.0)


def test_many_lines_of_one_kind_are_one_part():
    said = [(2200 + 100 * n, "Authentication passed\r\n") for n in range(12)]
    loader = ((10, "U-Boot SPL 2025.01 (Jan 01 2025)\r\n"), *said, (4000, "U-Boot 2025.01 (Jan 01 2025)\r\n"))
    found = grown(*loader, (5000, "\r\nStarting kernel ...\r\n"), *[(ms + 3000, text) for ms, text in KERNEL])
    names = [part.name for part in found.longest(Phase.SPL_BANNER, Phase.UBOOT_BANNER)]
    assert "after 'Authentication passed' (12 times)" in names


def test_a_rom_that_looks_for_a_medium_is_silent():
    found = grown(*[(ms + 9000, text) for ms, text in (*LOADER, *KERNEL)])
    (part,) = found.longest(Phase.POWER_ON, Phase.FIRST_OUTPUT)
    assert "the ROM tries media" in part.name
    assert part.seconds == pytest.approx(9.01)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("[    1.750000] EXT4-fs (mmcblk1p2): recovery complete\r\n", "journal was replayed"),
        ("         Starting Opkg first boot configure...\r\n", "units of a first boot"),
    ],
)
def test_a_boot_that_is_not_like_the_others_says_so(line, note):
    assert note in grown(*LOADER, *KERNEL[:-1], (6100, line), KERNEL[-1]).notes[0]
    assert note not in " ".join(grown(*LOADER, *KERNEL).notes)
