"""The watch on the console, and signs: every disaster once, however it is cut; words that are not TI's."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evmperf.boards.console.marks import Phase, remarks
from evmperf.boards.console.signs import diagnose, events, groups
from evmperf.boards.console.watch import Watch
from evmperf.measure import provenance, shellstep
from evmperf.model import places
from evmperf.model.errors import Kind
from evmperf.model.facts import Facts
from evmperf.model.records import BootMark
from selftests.support import programs
from selftests.support.texts import (
    BOOT,
    BUG,
    OOPS,
    PANIC,
    RESET,
    RESET_WITHOUT_SPL,
    SESSION,
    SPL_BOOT,
    chunked,
)

DISASTERS = {"kernel panic": [PANIC], "kernel oops": [OOPS, BUG], "silent reset": [RESET, RESET_WITHOUT_SPL]}
NAMED = [(name, text) for name, texts in DISASTERS.items() for text in texts]


def awaiting():
    """A watch of a board that was switched on, and whose U-Boot is awaited."""
    watch = Watch()
    watch.await_uboot()
    watch.restart()
    return watch


def alarms(chunks, watch=None):
    watch = watch or Watch()
    return [alarm for chunk in chunks if (alarm := watch.feed(chunk))]


def booted():
    """A watch of a board that runs Linux."""
    watch = awaiting()
    watch.settle()
    assert alarms([BOOT[BOOT.index(b"Starting kernel") :]], watch) == []
    return watch


def settled():
    """A watch of a board whose U-Boot was found."""
    watch = Watch()
    watch.settle()
    return watch


def at_uboot():
    """A watch of a board at U-Boot's prompt."""
    watch = awaiting()
    watch.settle()
    return watch


LINUX = BOOT[: BOOT.index(b"Linux version 6") + len(b"Linux version 6.12\r\n")]
"""While the kernel starts."""
ENTRY, EXIT = b"[  9.1] PM: suspend entry (deep)\r\n", b"[  9.9] PM: suspend exit\r\n"
SPL = b"U-Boot SPL 2025.01 (Jan 01 2025 - 00:00:00 +0000)\r\nSYSFW ABI: 4.0 (firmware)\r\n"
BANNERS = (
    b"root@board:~# strings /dev/mtd0 | head\r\n"
    b"U-Boot SPL 2025.01-ti (Mar 01 2025 - 10:00:00 +0000)\r\nTrying to boot from %s\r\n"
    b"SPL initial stack usage: %u bytes\r\nSYSFW ABI: %d.%d (firmware rev 0x%04x '%s')\r\n"
    b"root@board:~# fw_printenv ver\r\nver=U-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n"
    b"root@board:~# strings /dev/mtd1 | head\r\n"
    b"U-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\nDRAM:  %s\r\nModel: %s\r\n"
    b"root@board:~# "
)
VERSION = b"version\r\nU-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n\r\naarch64-gcc 13\r\n=> "
CASES = [
    # What watches, what is said before a disaster, it and what follows, and its name.
    # Nobody asked for U-Boot's prompt here, so that Linux may come without it.
    (Watch, SPL_BOOT + SESSION + SESSION, b"", b"", ""),
    (Watch, BOOT + (ENTRY + SPL + SPL + EXIT) * 2 + SESSION, b"", b"", ""),  # out of a suspend
    (Watch, RESET + RESET + BOOT, b"", b"", ""),  # U-Boot's own matter until a kernel runs
    (settled, VERSION, b"", b"", ""),
    (settled, b"", RESET, b"", "silent reset"),
    (booted, BANNERS, b"", b"", ""),  # that a program prints
    (booted, BANNERS, RESET, b"", "silent reset"),
    *((Watch, BOOT, text, text + SESSION, name) for name, text in NAMED),  # it is found once
    *((Watch, BOOT + SESSION, text, text + SESSION, name) for name, text in NAMED),
    *((Watch, LINUX + b"\r\n", text, b"", name) for name, text in NAMED),
    (Watch, BOOT + ENTRY + SPL, RESET_WITHOUT_SPL, b"", "silent reset"),
    (Watch, BOOT + ENTRY + EXIT, SPL, b"", "silent reset"),
    (at_uboot, b"boot\r\nswitch to partitions #0\r\n", b"resetting ...\r\n", SPL_BOOT, "silent reset"),
    *(
        (booted, SESSION + b"\r\n", line + b"\r\n", SESSION, name)
        for name, line in (
            ("soft lockup", b"[  40.123456] watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"),
            ("RCU stall", b"[  40.123456] rcu: INFO: rcu_preempt self-detected stall on CPU"),
            ("RCU stall", b"[  40.123456] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"),
            ("SError", b"[  40.123456][    C0] SError Interrupt on CPU0, code 0xbf000002"),
            ("hung task", b"[ 240.123456] INFO: task dd:412 blocked for more than 120 seconds."),
            ("emergency mode", b"Cannot open access to console, the root account is locked."),
            ("OP-TEE panic", b"E/TC:1 0 Panic 'no memory' at core/mm.c:7 <init>"),
        )
    ),
]


@settings(max_examples=25 * len(CASES))
@given(st.sampled_from(CASES), st.data())
def test_a_disaster_is_found_once_whatever_the_chunks_and_nothing_else_ever(case, data):
    watch, before, disaster, after, name = case
    found = alarms(data.draw(chunked(before + disaster + after)), watch())
    assert [alarm.name for alarm in found] == [name] * bool(name)
    assert all(alarm.text.encode() in disaster for alarm in found)


@pytest.mark.parametrize("size", [1, 100, 4096])
@pytest.mark.parametrize("length", [10, 200, 255, 256, 300, 900])
def test_a_panic_is_found_however_long_its_line_is(length, size):
    text = BOOT + b"\r\nKernel panic - not syncing: " + b"x" * length + b"\r\n"
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert [alarm.name for alarm in alarms(chunks)] == ["kernel panic"]


def test_a_power_on_forgives_and_forgets():
    watch = Watch()
    assert alarms([BOOT + PANIC], watch)
    watch.restart()
    assert alarms([SPL_BOOT + SESSION], watch) == []
    assert [a.name for a in alarms([RESET], watch)] == ["silent reset"]


def test_an_alarm_says_who_has_to_act_and_whether_a_power_cycle_may_help():
    (alarm,) = alarms([SPL + b"Authentication failed!\r\n"], awaiting())
    assert (alarm.kind, alarm.permanent) == (Kind.BOARD, True)
    assert "hs-fs" in alarm.remedy


@given(st.sampled_from(groups()), st.data())
def test_no_event_begins_with_a_byte_that_is_passed_over(pattern, data):
    text = data.draw(st.from_regex(re.compile(pattern.encode("latin-1"))))
    assert events().search(text)


ROOT_MISSING = "the root file system did not appear"
UBOOT = "U-Boot 2025.01 (Jan 06 2025)\nHit any key to stop autoboot:  2 \n"


@pytest.mark.parametrize("prompt", ["#> ", "> ", "$ ", "sunxi# ", "U-Boot> "])
def test_a_prompt_of_another_form_is_named_with_what_to_set(prompt):
    cause = diagnose(f"{UBOOT}{prompt}")
    assert cause
    assert cause.text == prompt.strip()
    assert cause.kind is Kind.LAB
    assert cause.permanent
    assert "`prompt` of EvmUBootDriver" in cause.remedy


def test_a_root_that_came_is_not_the_cause():
    said = (
        f"{UBOOT}Starting kernel ...\n[    1.0] Linux version 6.12\nBegin: Waiting for root file system ...\n"
    )
    assert diagnose(said).name == ROOT_MISSING
    said += "[   22.1] EXT4-fs (mmcblk0p1): mounted filesystem r/w with ordered data mode.\n" + "\n".join(
        f"[   {second}.1] Run /sbin/init as init process" for second in range(23, 30)
    )
    assert diagnose(said).name != ROOT_MISSING
    assert "login" in diagnose(said).name


def test_a_reset_by_software_that_nothing_follows_is_named():
    said = "The system is going down NOW!\n[   67.980333] reboot: Restarting system\n"
    assert "did not start again" in diagnose(said).name


def marks(**seconds):
    return {p: BootMark(p, round(seconds[p] * 1e9), 0, 0.0, "") for p in Phase if p in seconds}


def test_a_ram_disk_and_a_late_first_line_are_said():
    plain = marks(starting_kernel=0, first_kernel_line=0.5, root_mounted=3, init_started=4)
    assert remarks(plain) == []
    (late,) = remarks(marks(starting_kernel=1, first_kernel_line=12.25, root_mounted=13, init_started=14))
    assert "11.2 s after" in late
    (memory,) = remarks(marks(starting_kernel=0, init_started=4, root_mounted=9))
    assert "RAM disk" in memory


@pytest.mark.parametrize(
    ("os_release", "release"),
    [
        ('ID=debian\nVERSION_ID="13"\n', ""),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', ""),
        ('ID=arago\nVERSION_ID="2023.10"\n', "2023.10"),
        ('ID=debian\nVERSION_ID="13"\nBUILD_ID=11.01\n', "11.01"),
    ],
)
def test_a_distributions_version_is_no_sdks(os_release, release):
    assert provenance.release(Facts(), {"os_release": os_release}) == release


def test_debians_lmbench_is_found_where_it_lies(tmp_path):
    program = tmp_path / "bin" / "arm-linux" / "bw_mem"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    search = places.FURTHER_PROGRAMS.replace("/usr/lib/lmbench", str(tmp_path))
    done = programs.run("sh", "-c", f"{search}; command -v bw_mem")
    assert done.stdout.strip() == str(program)
    assert places.FURTHER_PROGRAMS in shellstep.wrapper()
