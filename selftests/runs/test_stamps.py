"""Boot times of runs whose schema stated no error: worked out from their console."""

import json

import pytest

from evmperf.measure.runs import spool
from evmperf.measure.runs.stamps import CONSOLE_LOG
from evmperf.model.records import BootRecord
from evmperf.model.results import Result

BEGIN, STALL, PROMPT = 10_000_000_000, 14_000_000_000, 15_500_000_000
"""Starting kernel; the byte before nobody read for 1.5 s; the prompt, in nanoseconds."""


def _mark(phase, mono_ns):
    return {"phase": phase, "mono_ns": mono_ns, "wall_ns": mono_ns, "error_s": 0.002}


def _console(begin_ns, before_ns, prompt_ns, length):
    """Format 1: no bounds. The prompt comes at the end of `length` bytes in one piece."""
    records = [
        (begin_ns, b"Starting kernel ...\r\n"),
        (before_ns, b"x"),
        (prompt_ns, b"." * (length - 7) + b"login: "),
    ]
    lines = [b"evmperf-console/1\n"]
    for mono_ns, data in records:
        seconds, rest = divmod(mono_ns, 10**9)
        lines.append(f"{seconds}.{rest:09d} 2026-11-01T00:00:00.000000Z < {data!r}\n".encode())
    return b"".join(lines)


@pytest.fixture
def old_run(tmp_path):
    """A run of schema 1 with one boot and its boot time."""
    boot = {
        "schema": 1,
        "record": "boot",
        "goal": "shell",
        "started_ns": 1,
        "duration_s": 20.0,
        "marks": [_mark("power_on", 1), _mark("starting_kernel", BEGIN), _mark("prompt", PROMPT)],
    }
    result = {
        "schema": 1,
        "record": "result",
        "benchmark": "boot_time_emmc",
        "version": 1,
        "driver": "boot",
        "case": "boot",
        "params": {},
        "profile": "full",
        "status": "measured",
        "samples": [
            {
                "metric": "boot_time",
                "value": (PROMPT - BEGIN) / 1e9,
                "unit": "s",
                "repetition": 0,
                "time_ns": 5,
            },
            {"metric": "kernel", "value": 1.25, "unit": "s", "repetition": 0, "time_ns": 5},
        ],
    }
    lines = (json.dumps(record) + "\n" for record in (boot, result))
    (tmp_path / spool.RECORDS).write_text("".join(lines))
    return tmp_path


def _read(folder):
    boot, result = spool.read_records(folder)
    assert isinstance(boot, BootRecord)
    assert isinstance(result, Result)
    return {mark.phase: mark.error_s for mark in boot.marks}, result


def test_a_stalled_reader_shows_in_the_error(old_run):
    (old_run / CONSOLE_LOG).write_bytes(_console(BEGIN, STALL, PROMPT, 7112))
    marks, result = _read(old_run)
    assert marks["prompt"] == pytest.approx(1.5)
    assert marks["starting_kernel"] == pytest.approx(0.002)
    assert result.error("boot_time") == pytest.approx(1.5)


def test_a_reader_that_kept_up_is_as_good_as_it_said(old_run):
    (old_run / CONSOLE_LOG).write_bytes(_console(BEGIN, STALL, PROMPT, 8))
    marks, result = _read(old_run)
    assert marks["prompt"] == pytest.approx(0.002)
    assert result.error("boot_time") == pytest.approx(0.002)


def test_what_the_console_does_not_tell_has_no_error(old_run):
    (old_run / CONSOLE_LOG).write_bytes(_console(BEGIN, STALL, PROMPT, 7112))
    _, result = _read(old_run)
    assert result.error("kernel") is None


def test_without_a_console_nothing_is_made_up(old_run):
    marks, result = _read(old_run)
    assert marks["prompt"] == pytest.approx(0.002)
    assert result.error("boot_time") is None


def test_going_on_from_the_middle_of_the_file_tells_the_same(old_run):
    (old_run / CONSOLE_LOG).write_bytes(_console(BEGIN, STALL, PROMPT, 7112))
    first, _ = next(spool.records_from(old_run, 0))
    [(_, result)] = spool.records_from(old_run, first)
    assert result.error("boot_time") == pytest.approx(1.5)
