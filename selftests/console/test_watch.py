"""The watch on the console: every disaster once, however it is cut, and nothing else ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.console.watch import Watch
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

DISASTERS = {
    "kernel panic": [PANIC],
    "kernel oops": [OOPS, BUG],
    "silent reset": [RESET, RESET_WITHOUT_SPL],
}
NAMED = [(name, text) for name, texts in DISASTERS.items() for text in texts]


def alarms(chunks, watch=None):
    watch = watch or Watch()
    return [alarm for chunk in chunks if (alarm := watch.feed(chunk))]


@given(st.data())
def test_a_normal_boot_and_session_raise_no_alarm(data):
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
    text = BOOT + b"Kernel panic - not syncing: " + b"x" * length + b"\r\n"
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
