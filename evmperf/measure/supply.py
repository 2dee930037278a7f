"""The board's supply while a case is measured: its power by time, and when the tool worked."""

import threading
import time
from collections.abc import Sequence

from msgspec import structs

from evmperf.benchmarks import energy
from evmperf.benchmarks.tools import meter as answers
from evmperf.measure.bench import Meter, StepOutput
from evmperf.model.errors import EvmperfError
from evmperf.model.results import Result

_EVERY_S = 0.05
"""Seconds from the end of a reading to the next."""
_TICK_S = 0.01
"""What /proc/uptime resolves."""


class BoardClock:
    """When a board's uptime was, by our clock: each step began after it was typed, and ended before its
    answer came. All steps since a boot together tell the difference of both clocks.
    """

    low_s, high_s = float("-inf"), float("inf")

    def learn(self, typed_ns: int, output: StepOutput, answered_ns: int) -> tuple[int, int] | None:
        """Begin and end of a step in ns since the epoch; None without an uptime."""
        if output.uptime_s is None:
            return None
        low = typed_ns / 1e9 - output.uptime_s - _TICK_S
        high = answered_ns / 1e9 - (output.uptime_s + output.busy_s)
        self.low_s, self.high_s = max(self.low_s, low), min(self.high_s, high)
        if self.low_s > self.high_s:  # the clocks have drifted
            self.low_s, self.high_s = low, high
        began_s = output.uptime_s + (self.low_s + self.high_s) / 2
        return round(began_s * 1e9), round((began_s + output.busy_s) * 1e9)


class Recording:
    """A meter that is read over and over until `end`; raises LabError for rails that it does not have."""

    def __init__(self, meter: Meter, rails: tuple[str, ...]) -> None:
        meter.check(rails)
        self._meter, self._rails = meter, rails
        self._series: list[tuple[int, float]] = []
        self._failed = ""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._read, name="supply", daemon=True)
        # A window needs a reading before it, and a boot begins at once.
        self._take()
        self._thread.start()

    def _read(self) -> None:
        while not (self._failed or self._stopped.wait(_EVERY_S)):
            self._take()

    def _take(self) -> None:
        before_ns = time.time_ns()
        try:
            watts = answers.total(self._meter.read(self._rails))
            self._series.append(((before_ns + time.time_ns()) // 2, watts))
        except EvmperfError as error:
            self._failed = str(error)

    def joined(self, result: Result, windows: Sequence[energy.PowerWindow]) -> Result:
        """The result with its power and energy, or with the reason why it has none."""
        samples, missing = energy.samples(windows, self._series)
        conditions = {**result.conditions, "supply_meter": self._meter.identity()}
        if why := self._failed or missing:
            conditions["no_energy"] = why
        return structs.replace(result, samples=(*result.samples, *samples), conditions=conditions)

    def end(self) -> None:
        """Read once more, and stop."""
        self._stopped.set()
        self._thread.join()
        if not self._failed:
            self._take()
