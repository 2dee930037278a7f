"""Reading the meter while a command runs undisturbed on the board."""

from collections.abc import Callable

from evmperf.benchmarks.step import MeterWindow, Outputs
from evmperf.measure.bench import Clock, Meter
from evmperf.model.errors import BoardError
from evmperf.tools import meter as log

_EVERY_S = 0.5
"""Minimum seconds between two sweeps over the rails: a meter averages over part of that."""


def perform(
    meter: Meter, window: MeterWindow, start: Callable[[], object], check: Callable[[], Outputs], clock: Clock
) -> Outputs:
    """Perform a `MeasurePower`; `start` and `check` run its two commands on the board.

    Queries the meter before the first command. Raises BoardError if the board does not answer
    afterwards, and the errors of the meter and the commands.
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
    return {**_after_quiet(check, window), log.JSON_FILE: log.write(returned - began, ended, samples)}


def _after_quiet(check: Callable[[], Outputs], window: MeterWindow) -> Outputs:
    try:
        return check()
    except BoardError as error:
        raise BoardError(
            f"the board does not answer {window.quiet_s:g} s after it was sent to sleep: {error}"
        ) from error


def _wait_until(clock: Clock, monotonic_s: float) -> None:
    clock.sleep(max(0.0, monotonic_s - clock.monotonic()))
