"""Reading the meter while the board does something that must not be disturbed."""

from __future__ import annotations

from collections.abc import Callable

from evmperf.benchmarks.step import MeterWindow, Outputs
from evmperf.measure.bench import Clock, Meter
from evmperf.model.errors import BoardError
from evmperf.tools import meter as log

_EVERY_S = 0.5
"""A sweep over the rails begins at most so often: a meter averages over some of that anyway."""


def perform(
    meter: Meter,
    window: MeterWindow,
    start: Callable[[], object],
    check: Callable[[], Outputs],
    clock: Clock,
) -> Outputs:
    """Do what `MeasurePower` says; `start` and `check` run the two commands on the board.

    The meter is asked before anything is started. Raises BoardError when the board does not answer
    afterwards, and what the meter and the commands raise.
    """
    meter.check(window.rails)
    began = clock.monotonic()
    start()
    returned = clock.monotonic()
    samples: list[log.Sweep] = []
    _wait_until(clock, returned + window.settle_s)
    while True:
        now = clock.monotonic()
        for rail, answers in meter.read(window.rails).items():
            samples.append((now - returned, rail, *answers))
        ended = clock.monotonic() - returned
        if ended >= window.settle_s + window.window_s:
            break
        _wait_until(clock, now + _EVERY_S)
    _wait_until(clock, returned + window.quiet_s)
    return {
        **_after_quiet(check, window),
        log.JSON_FILE: log.write(returned - began, ended, samples),
    }


def _after_quiet(check: Callable[[], Outputs], window: MeterWindow) -> Outputs:
    try:
        return check()
    except BoardError as error:
        raise BoardError(
            f"the board does not answer {window.quiet_s:g} s after it was sent to sleep: {error}"
        ) from error


def _wait_until(clock: Clock, monotonic_s: float) -> None:
    clock.sleep(max(0.0, monotonic_s - clock.monotonic()))
