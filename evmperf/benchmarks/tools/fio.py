"""fio: command line and parser of its JSON output (fio 3, `--output-format=json`)."""

import json
import re
from typing import Any

from evmperf.benchmarks.tools._checks import refuse, refusing
from evmperf.model.errors import RefusedOutput
from evmperf.model.units import KIBIBYTE, MEGABYTE

_NORMAL = re.compile(r"\s*(?:[^\n]*: \(groupid=\d+, jobs=\d+\): err= *0: |\Z)")
"""Allowed after the JSON: nothing, or the normal output (`--output-format=json,normal`)."""
_ENDED = "terminating on signal"
_SHORTEST = 0.999
"""Minimum part of the requested time that a timed job must run."""
_BINARY = 1e-9
"""Relative rounding error of older versions, which divide in floating point."""


def command(name: str, target: str, size: str, runtime_s: int) -> str:
    """Shell text of LTP-DDT's fio job at `target` (fio's option), which does `$rw` in blocks of `$b`, into
    `$OUT/$b.$rw.json`.
    """
    return (
        f"fio --name={name} {target} --size={size} --rw=$rw --blocksize=$b "
        f"--ioengine=libaio --iodepth=4 --numjobs=1 --direct=1 --group_reporting "
        f"--runtime={runtime_s} --time_based --eta=never "
        f'--output-format=json --output="$OUT/$b.$rw.json"'
    )


def throughput(text: str, direction: str, seconds: int | None = None) -> float:
    """Mean throughput of one job in MB/s (10^6 bytes); `direction` is `read` or `write`, `seconds` how long a
    timed job must have run. Raises RefusedOutput for anything but a finished job without errors that moved
    data, and unless fio's rates in bytes and KiB, bytes and milliseconds agree.
    """
    job = _job(text)
    refuse(job.get("error") != 0, f"fio reports error {job.get('error')}", text)
    other = "read" if direction == "write" else "write"
    with refusing(f"fio's output has no {direction} side", text):
        side, idle = job[direction], job[other]
        moved, rate, moved_other = side["io_bytes"], side["bw_bytes"], idle["io_bytes"]
        again = side["io_kbytes"], side["bw"], side["runtime"]
    integers = all(type(number) is int for number in (moved, rate, moved_other, *again))
    refuse(not integers, "fio's byte counts are not whole numbers", text)
    refuse(moved_other, f"fio was asked to {direction} but did {other}", text)
    refuse(moved <= 0 or rate <= 0, f"fio's {direction} job moved no data", text)
    moved_kib, rate_kib, runtime_ms = again
    same = (moved // KIBIBYTE, rate // KIBIBYTE) == (moved_kib, rate_kib)
    refuse(not same, "fio's bytes and KiB contradict each other", text)
    early = seconds is not None and runtime_ms < 1000 * seconds * _SHORTEST
    refuse(early, f"fio ended after {runtime_ms} ms instead of {seconds} s", text)
    off = abs(rate * runtime_ms - 1000 * moved) > runtime_ms * (1 + rate * _BINARY)
    refuse(off, f"fio's rate does not match {moved} bytes in {runtime_ms} ms", text)
    return float(rate) / MEGABYTE


def _job(text: str) -> dict[str, Any]:
    refuse(_ENDED in text, "fio was ended by a signal", text)
    # fio may print notes before the object.
    start = text.find("{")
    refuse(start < 0, "fio's output holds no JSON", text)
    try:
        document, end = json.JSONDecoder().raw_decode(text, start)
    except ValueError as error:
        raise RefusedOutput(f"fio's output is not whole JSON: {error}", text) from None
    refuse(not _NORMAL.match(text, end), "fio's output continues after its JSON", text)
    with refusing("fio's output does not hold exactly one job", text):
        (job,) = document["jobs"]
        return dict(job.items())
