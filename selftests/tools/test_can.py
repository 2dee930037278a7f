"""What awk counts in candump's log, and what is refused of the count."""

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.tables import can_loopback as can
from evmperf.model.errors import RefusedOutput


def frame(number, size=8, fd=False):
    """A line of candump -L for a frame with that number in its data, a tenth of a ms a frame."""
    data = number.to_bytes(8, "little").hex().upper() + "00" * (size - 8)
    return f"(1795303410.{number * 100:06}) evmperf-can 123#{'#5' if fd else ''}{data}"


def counted(tmp_path, lines, size=8):
    log = tmp_path / "log"
    log.write_text("".join(f"{line}\n" for line in lines))
    done = subprocess.run(
        ["sh", "-c", can.SHELL("count", log=log, digits=2 * size)], capture_output=True, text=True, check=True
    )
    return f"sent 1000\nuptime 1.00 9.00\n{done.stdout}"


@pytest.mark.parametrize(("size", "fd"), [(8, False), (64, True)])
def test_a_whole_log_gives_its_rate(tmp_path, size, fd):
    text = counted(tmp_path, [frame(n, size, fd) for n in range(1000)], size)
    assert can.transfer(text, 1000) == (10_000, 0.0)


def test_frames_that_are_missing_are_lost(tmp_path):
    lost = {0, 300, 301, 999}
    text = counted(tmp_path, [frame(n) for n in range(1000) if n not in lost])
    per_second, loss = can.transfer(text, 1000)
    assert loss == pytest.approx(0.4)
    assert per_second == pytest.approx(995 / 0.0997)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [*lines[:5], *lines[4:]], "1 frames disordered"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "1 frames disordered"),
        (lambda lines: [*lines[:5], lines[5][:-2], *lines[6:]], "1 frames unknown"),
        (lambda lines: [*lines[:5], "read: Network is down", *lines[5:]], "frames unknown"),
        (
            lambda lines: [
                *lines[:5],
                "DROPCOUNT: dropped 7 CAN frames on 'evmperf-can' socket (total drops 7)",
                *lines[12:],
            ],
            "7 frames dropped",
        ),
        (lambda lines: [*lines, frame(1000)], "up to the 1001th of 1000"),
        (lambda lines: lines[:1], "received 1 frames"),
        (lambda lines: [], "not the count"),
    ],
)
def test_a_log_that_is_not_in_order_gives_no_figure(tmp_path, change, reason):
    with pytest.raises(RefusedOutput, match=reason):
        can.transfer(counted(tmp_path, change([frame(n) for n in range(1000)])), 1000)


@given(st.integers(-100, 100))
def test_a_clock_that_was_set_while_frames_went_is_noticed(seconds):
    text = (
        "sent 9\nuptime 5.00 6.00\nreceived 9\nlost 0\ndropped 0\ndisordered 0\nunknown 0\n"
        f"first (1795303410.500000) 0\nlast ({1795303411 + seconds}.000000) 8\n"
    )
    if seconds == 0:
        assert can.transfer(text, 9)[0] == pytest.approx(16)
        return
    with pytest.raises(RefusedOutput, match="was the clock set"):
        can.transfer(text, 9)
