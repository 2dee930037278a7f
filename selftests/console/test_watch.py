"""The watch on the console: every disaster once, however it is cut, and nothing else ever."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.boards.console.signs import events, groups
from evmperf.boards.console.watch import Watch
from evmperf.model.errors import Kind
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


@given(st.data())
def test_a_normal_boot_and_session_raise_no_alarm(data):
    """Nobody asked for U-Boot's prompt, so that Linux may come without it."""
    assert alarms(data.draw(chunked(SPL_BOOT + SESSION + SESSION))) == []


@given(st.sampled_from(NAMED), st.sampled_from([BOOT, BOOT + SESSION]), st.data())
def test_a_disaster_is_found_once_whatever_the_chunks(named, before, data):
    name, text = named
    found = alarms(data.draw(chunked(before + text + text + SESSION)))
    assert [alarm.name for alarm in found] == [name]
    assert found[0].text.encode() in text


@given(st.sampled_from(NAMED), st.data())
def test_a_disaster_while_the_kernel_starts_is_found(named, data):
    name, text = named
    start = BOOT.index(b"Linux version 6") + len(b"Linux version 6.12\r\n")
    found = alarms(data.draw(chunked(BOOT[:start] + b"\r\n" + text)))
    assert [alarm.name for alarm in found] == [name]


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


def test_a_second_bootloader_before_linux_is_no_alarm():
    # U-Boot that resets itself (a watchdog, `reset`) is U-Boot's matter until a kernel runs.
    assert alarms([RESET, RESET, BOOT]) == []


def test_a_second_bootloader_after_its_prompt_is_a_reset():
    watch = Watch()
    assert alarms([RESET], watch) == []
    watch.settle()
    watch.settle()
    assert [alarm.name for alarm in alarms([RESET], watch)] == ["silent reset"]


ENTRY, EXIT = b"[  9.1] PM: suspend entry (deep)\r\n", b"[  9.9] PM: suspend exit\r\n"
SPL = b"U-Boot SPL 2025.01 (Jan 01 2025 - 00:00:00 +0000)\r\nSYSFW ABI: 4.0 (firmware)\r\n"


@given(st.data())
def test_spl_on_the_way_out_of_a_suspend_is_no_alarm(data):
    assert alarms(data.draw(chunked(BOOT + (ENTRY + SPL + SPL + EXIT) * 2 + SESSION))) == []


@given(st.sampled_from([ENTRY + SPL + RESET_WITHOUT_SPL, ENTRY + EXIT + SPL]), st.data())
def test_a_reset_in_or_after_a_suspend_is_found(text, data):
    found = alarms(data.draw(chunked(BOOT + text)))
    assert [alarm.name for alarm in found] == ["silent reset"]


def booted():
    """A watch of a board that runs Linux."""
    watch = awaiting()
    watch.settle()
    assert alarms([BOOT[BOOT.index(b"Starting kernel") :]], watch) == []
    return watch


@given(
    st.sampled_from(
        [
            ("soft lockup", b"[  40.123456] watchdog: BUG: soft lockup - CPU#1 stuck for 22s!"),
            ("RCU stall", b"[  40.123456] rcu: INFO: rcu_preempt self-detected stall on CPU"),
            ("RCU stall", b"[  40.123456] rcu: INFO: rcu_sched detected stalls on CPUs/tasks:"),
            ("SError", b"[  40.123456][    C0] SError Interrupt on CPU0, code 0xbf000002"),
            ("hung task", b"[ 240.123456] INFO: task dd:412 blocked for more than 120 seconds."),
            ("emergency mode", b"Cannot open access to console, the root account is locked."),
            ("OP-TEE panic", b"E/TC:1 0 Panic 'no memory' at core/mm.c:7 <init>"),
        ]
    ),
    st.data(),
)
def test_what_goes_wrong_in_linux_is_named(named, data):
    name, line = named
    text = SESSION + b"\r\n" + line + b"\r\n" + SESSION
    found = alarms(data.draw(chunked(text)), booted())
    assert [alarm.name for alarm in found] == [name]
    assert found[0].text.encode() in line + b"\n"


@given(st.data())
def test_a_reset_in_uboot_is_named_however_it_is_cut(data):
    watch = awaiting()
    watch.settle()
    text = b"boot\r\nswitch to partitions #0, OK\r\nresetting ...\r\n\r\n" + SPL_BOOT
    found = alarms(data.draw(chunked(text)), watch)
    assert [(alarm.name, alarm.text) for alarm in found] == [("silent reset", "resetting ...")]


BANNERS = (
    b"root@board:~# strings /dev/mtd0 | head\r\n"
    b"U-Boot SPL 2025.01-ti (Mar 01 2025 - 10:00:00 +0000)\r\nTrying to boot from %s\r\n"
    b"SPL initial stack usage: %u bytes\r\nSYSFW ABI: %d.%d (firmware rev 0x%04x '%s')\r\n"
    b"root@board:~# fw_printenv ver\r\nver=U-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n"
    b"root@board:~# strings /dev/mtd1 | head\r\n"
    b"U-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\nDRAM:  %s\r\nModel: %s\r\n"
    b"root@board:~# "
)


@given(st.data())
def test_a_banner_that_a_program_prints_is_no_reset(data):
    watch = booted()
    assert alarms(data.draw(chunked(BANNERS)), watch) == []
    assert [a.name for a in alarms([RESET], watch)] == ["silent reset"]


def test_the_version_command_is_no_reset():
    watch = Watch()
    watch.settle()
    version = b"version\r\nU-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)\r\n\r\naarch64-gcc 13\r\n"
    assert alarms([version, b"=> "], watch) == []


def test_an_alarm_says_who_has_to_act_and_whether_a_power_cycle_may_help():
    (alarm,) = alarms([SPL + b"Authentication failed!\r\n"], awaiting())
    assert (alarm.kind, alarm.permanent) == (Kind.BOARD, True)
    assert "hs-fs" in alarm.remedy


@given(st.sampled_from(groups()), st.data())
def test_no_event_begins_with_a_byte_that_is_passed_over(pattern, data):
    text = data.draw(st.from_regex(re.compile(pattern.encode("latin-1"))))
    assert events().search(text)
