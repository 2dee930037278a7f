"""Meters on a board's rails as Labgrid resources and drivers: an instrument, or Linux's hwmon.

The resources are the lab's: where the meter is, and which rail is on which channel. A coordinator
passes on numbers and words only, so `rails` may be a mapping, or the text of one in YAML.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attr
import yaml
from labgrid.driver.common import Driver
from labgrid.factory import target_factory
from labgrid.resource.common import Resource

from evmperf.lab.hwmon import Hwmon
from evmperf.lab.scpi import CURRENT, VOLTAGE, Scpi
from evmperf.model.errors import LabError

Back = Hwmon | Scpi


def _rails(value: Any) -> dict[str, Any]:
    """The mapping of rails; raises ValueError (Labgrid names the resource) for anything else."""
    try:
        rails = yaml.safe_load(value) if isinstance(value, str) else value
    except yaml.YAMLError:
        rails = None
    if not isinstance(rails, dict) or not rails:
        raise ValueError(f"rails must map the name of each rail to its channel, not {value!r}")
    return {str(rail): channel for rail, channel in rails.items()}


@target_factory.reg_resource
@attr.s(eq=False)
class HwmonMeter(Resource):  # type: ignore[misc]
    """Sensors that Linux shows below /sys/class/hwmon (INA2xx), here or over SSH.

    Args:
        rails: rail to the sensor's `label`, or to a mapping of `label`, `name`, `device` (what must
            match), `input` (number of the voltage, default 1) and `power` (true: take the sensor's
            own power in place of the current)
        host: SSH destination of the machine with the sensors; "" is this one
        root: the folder with the hwmon devices
        ssh_options: further options for ssh, as in a shell
    """

    rails: dict[str, Any] = attr.ib(converter=_rails)
    host: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    root: str = attr.ib(default="/sys/class/hwmon", validator=attr.validators.instance_of(str))
    ssh_options: str = attr.ib(default="", validator=attr.validators.instance_of(str))


@target_factory.reg_resource
@attr.s(eq=False)
class ScpiMeter(Resource):  # type: ignore[misc]
    """An instrument that speaks SCPI, anywhere PyVISA finds it.

    Args:
        rails: rail to its channel, or to a mapping of `channel`, `voltage` and `current`
        visa: VISA address, e.g. TCPIP::192.0.2.9::5025::SOCKET or USB::0x2A8D::0x3102::MY1::INSTR
        voltage, current: queries in V and A, with {channel} where the channel goes
        setup: commands sent once before, e.g. to choose a range
        timeout: seconds to wait for an answer
    """

    rails: dict[str, Any] = attr.ib(converter=_rails)
    visa: str = attr.ib(validator=attr.validators.instance_of(str))
    voltage: str = attr.ib(default=VOLTAGE, validator=attr.validators.instance_of(str))
    current: str = attr.ib(default=CURRENT, validator=attr.validators.instance_of(str))
    setup: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    timeout: float = attr.ib(default=10.0, converter=float)


class RailMeterDriver(Driver):  # type: ignore[misc]
    """A `evmperf.measure.bench.Meter`: opens its back end when activated, and closes it."""

    _back: Back | None = None

    def on_activate(self) -> None:
        """Reach the meter; raises LabError."""
        self._back = self._open()

    def on_deactivate(self) -> None:
        """Let go of the meter."""
        if self._back:
            self._back.close()
        self._back = None

    def identity(self) -> str:
        """Maker, model, serial number and back end."""
        return self._reached().identity

    def check(self, rails: Sequence[str]) -> None:
        """Raise LabError that names the rails which it is not connected to."""
        known = self._known()
        missing = [rail for rail in rails if rail not in known]
        if missing:
            raise LabError(
                f"the meter is not connected to {', '.join(missing)}: add them to `rails` of "
                f"{type(self.meter).__name__} (it has {', '.join(known)})"
            )

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage and current (or power) of each rail now; raises LabError."""
        return self._reached().read(rails)

    def _known(self) -> Mapping[str, Any]:
        known: Mapping[str, Any] = self.meter.rails
        return known

    def _reached(self) -> Back:
        if self._back is None:
            raise LabError("the meter's driver is not active")
        return self._back

    def _open(self) -> Back:
        raise NotImplementedError


@target_factory.reg_driver
@attr.s(eq=False)
class HwmonMeterDriver(RailMeterDriver):
    """Reads the rails of a HwmonMeter."""

    bindings = {"meter": {HwmonMeter}}  # noqa: RUF012  # Labgrid's form

    def _open(self) -> Hwmon:
        meter = self.meter
        return Hwmon(meter.host, meter.root, meter.rails, shlex.split(meter.ssh_options))


@target_factory.reg_driver
@attr.s(eq=False)
class ScpiMeterDriver(RailMeterDriver):
    """Reads the rails of a ScpiMeter."""

    bindings = {"meter": {ScpiMeter}}  # noqa: RUF012  # Labgrid's form

    def _open(self) -> Scpi:
        meter = self.meter
        return Scpi(
            meter.visa,
            meter.rails,
            voltage=meter.voltage,
            current=meter.current,
            setup=meter.setup,
            timeout_s=meter.timeout,
        )
