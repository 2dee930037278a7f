"""Rails behind an instrument that speaks SCPI, through PyVISA's pure Python back end.

A socket, VXI-11, HiSLIP or USB address makes no difference to what is said here.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from evmperf.model.errors import LabError

VOLTAGE = "MEAS:VOLT? (@{channel})"
CURRENT = "MEAS:CURR? (@{channel})"
"""Queries of one channel in V and A (SCPI-99 volume 2, MEASure and channel lists)."""


class Scpi:
    """An open conversation with an instrument; raises LabError when it cannot be opened.

    `rails` maps each rail to its channel, or to a mapping of `channel` and queries of its own in
    place of `voltage` and `current`. `timeout_s` is for each answer.
    """

    def __init__(
        self,
        visa: str,
        rails: Mapping[str, Any],
        *,
        voltage: str = VOLTAGE,
        current: str = CURRENT,
        setup: str = "",
        timeout_s: float = 10.0,
    ) -> None:
        self._visa = visa
        self._queries = {rail: _queries(rail, channel, voltage, current) for rail, channel in rails.items()}
        self._open(timeout_s)
        try:
            with self._talking("*IDN?"):
                self.identity = f"{self._instrument.query('*IDN?').strip()} (SCPI)"
            if setup:
                with self._talking(setup):
                    self._instrument.write(setup)
        except LabError:
            self.close()
            raise

    def read(self, rails: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Voltage in V and current in A of each rail as the instrument says them; LabError."""
        return {rail: (self._ask(rail, 0, "V"), self._ask(rail, 1, "A")) for rail in rails}

    def close(self) -> None:
        """End the conversation."""
        with contextlib.suppress(Exception):  # it may be gone already, in any of VISA's ways
            self._instrument.close()
        self._manager.close()

    def _open(self, timeout_s: float) -> None:
        import pyvisa  # noqa: PLC0415  # slow to import, and only boards with a meter need it

        self._manager = pyvisa.ResourceManager("@py")
        try:
            # A message-based resource, whose methods the stubs of `open_resource` do not know.
            self._instrument: Any = self._manager.open_resource(
                self._visa,
                open_timeout=round(timeout_s * 1000),
                timeout=round(timeout_s * 1000),
                read_termination="\n",
                write_termination="\n",
                # So that an answer with stray bytes is an answer still, to be refused by its text.
                encoding="latin-1",
            )
        except (pyvisa.errors.Error, OSError, ValueError) as error:
            self._manager.close()
            raise self._unreachable(error) from error

    def _ask(self, rail: str, which: int, unit: str) -> str:
        query = self._queries[rail][which]
        with self._talking(query):
            return f"{self._instrument.query(query).strip()} {unit}"

    @contextlib.contextmanager
    def _talking(self, query: str) -> Iterator[None]:
        from pyvisa import constants, errors  # noqa: PLC0415  # see _open

        try:
            yield
        except (errors.Error, OSError) as error:
            code = getattr(error, "error_code", None)
            if code == constants.StatusCode.error_timeout:
                raise LabError(
                    f"the meter at {self._visa} does not answer {query!r}, or has hung up: check "
                    f"its channels, and that no other program uses it"
                ) from error
            raise self._unreachable(error) from error

    def _unreachable(self, error: BaseException) -> LabError:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        return LabError(
            f"the meter at {self._visa} cannot be reached ({reason}): check that it is on, and "
            f"`visa` of ScpiMeter"
        )


def _queries(rail: str, channel: Any, voltage: str, current: str) -> tuple[str, str]:
    own = channel if isinstance(channel, dict) else {"channel": channel}
    if unknown := set(own) - {"channel", "voltage", "current"}:
        raise LabError(
            f"the meter's rail {rail} says {', '.join(sorted(map(str, unknown)))}: known are "
            f"channel, voltage and current"
        )
    texts = (str(own.get("voltage", voltage)), str(own.get("current", current)))
    number = str(own.get("channel", ""))
    if not number and any("{channel}" in text for text in texts):
        raise LabError(f"the meter's rail {rail} names no channel")
    return texts[0].replace("{channel}", number), texts[1].replace("{channel}", number)
