"""Meters on a board's rails as Labgrid resources and drivers: an instrument, or Linux's hwmon.

The resources are the lab's: where the meter is, and which rail is on which channel. A coordinator
passes on numbers and words only, so `rails` may be a mapping, or the text of one in YAML.
"""

import contextlib
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import attr
import yaml
from labgrid.driver.common import Driver
from labgrid.factory import target_factory
from labgrid.resource.common import Resource

from evmperf.lab.tester import CommandTester, SshTester
from evmperf.model.errors import LabError, ToolError, one_line

VOLTAGE = "MEAS:VOLT? (@{channel})"
CURRENT = "MEAS:CURR? (@{channel})"
"""Queries of one channel in V and A (SCPI-99 volume 2, MEASure and channel lists)."""
_SENSORS_S = 20.0
_KEYS = ("label", "name", "device")
_LIST = """\
cd {root} && for h in hwmon*; do
  [ -e $h/name ] || continue
  l=; [ -r $h/label ] && read -r l <$h/label
  [ "$l" ] || { [ -r $h/device/label ] && read -r l <$h/device/label; }
  read -r n <$h/name
  d=$(readlink $h/device); echo "$h|$l|$n|${d##*/}"
done"""


def _rails(value: object) -> dict[str, object]:
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

    rails: dict[str, object] = attr.ib(converter=_rails)
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

    rails: dict[str, object] = attr.ib(converter=_rails)
    visa: str = attr.ib(validator=attr.validators.instance_of(str))
    voltage: str = attr.ib(default=VOLTAGE, validator=attr.validators.instance_of(str))
    current: str = attr.ib(default=CURRENT, validator=attr.validators.instance_of(str))
    setup: str = attr.ib(default="", validator=attr.validators.instance_of(str))
    timeout: float = attr.ib(default=10.0, converter=float)


class RailMeterDriver(Driver):  # type: ignore[misc]
    """A `evmperf.measure.bench.Meter`, reached while it is active. Raises LabError."""

    _identity = ""

    def identity(self) -> str:
        """Maker, model, serial number and kind of access."""
        return self._identity

    def check(self, rails: Sequence[str]) -> None:
        """Raise LabError that names the rails which it is not connected to."""
        connected: Mapping[str, object] = self.meter.rails
        missing = [rail for rail in rails if rail not in connected]
        if missing:
            raise LabError(
                f"the meter is not connected to {', '.join(missing)}: add them to `rails` of "
                f"{type(self.meter).__name__} (it has {', '.join(connected)})"
            )

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage and current (or power) of each rail now, as texts with their units."""
        raise NotImplementedError


@target_factory.reg_driver
@attr.s(eq=False)
class HwmonMeterDriver(RailMeterDriver):
    """Reads the rails of a HwmonMeter.

    Files and units are those of Documentation/hwmon/sysfs-interface.rst: `in1_input` in mV (of an
    INA2xx the bus voltage), `curr1_input` in mA, `power1_input` in uW.
    """

    bindings = {"meter": {HwmonMeter}}  # noqa: RUF012  # Labgrid's form

    def on_activate(self) -> None:
        """Find the sensor of each rail."""
        host = self.meter.host
        self._shell = CommandTester((), "this machine")
        self._where = f"on {host}" if host else "of this machine"
        if host:
            options = shlex.split(self.meter.ssh_options)
            self._shell = SshTester(host, options, f"{host}, which has the board's sensors,")
        try:
            listed = [line.split("|") for line in self._run(_LIST).splitlines()]
            devices = [fields for fields in listed if len(fields) == len(_KEYS) + 1]
            self._files = {rail: _sensor(rail, given, devices) for rail, given in self.meter.rails.items()}
        except LabError:
            self._shell.close()
            raise
        chips = ", ".join(sorted({fields[2] for fields in devices}))
        self._identity = f"{chips} on {host or 'this machine'} (hwmon)"

    def on_deactivate(self) -> None:
        """Give up the connection, if there is one."""
        self._shell.close()

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage in mV and current in mA (or power in uW) of each rail."""
        script = "cd {root} && " + " && ".join(
            f'read -r v <{voltage} && read -r i <{other} && echo "{index} $v {unit} $i"'
            for index, (voltage, other, unit) in enumerate(self._files[rail] for rail in rails)
        )
        lines = [line.split() for line in self._run(script).splitlines()]
        read = {fields[0]: fields[1:] for fields in lines if len(fields) == 4}
        if list(read) != [str(index) for index in range(len(rails))]:
            raise LabError(f"the sensors {self._where} did not give a reading of every rail")
        return {
            rail: (f"{volts} mV", f"{other} {unit}")
            for rail, (volts, unit, other) in zip(rails, read.values(), strict=True)
        }

    def _run(self, script: str) -> str:
        try:
            reply = self._shell.run(script.replace("{root}", shlex.quote(self.meter.root)), _SENSORS_S)
        except ToolError:
            raise LabError(f"the sensors {self._where} have not answered for {_SENSORS_S:g} s") from None
        if reply.status:
            lines = reply.text.strip().splitlines() or ["no message"]
            raise LabError(f"the sensors {self._where} cannot be read: {lines[-1]}")
        return reply.text


def _sensor(rail: str, given: object, devices: Sequence[Sequence[str]]) -> tuple[str, str, str]:
    """Files of a rail's voltage and current (or power) below the root, and the unit of the second."""
    keys = dict(given) if isinstance(given, dict) else {"label": given}
    number, power = keys.pop("input", 1), keys.pop("power", False)
    if not keys or set(keys) - set(_KEYS):
        raise LabError(
            f"the sensor of {rail} is described by {given!r}: give its label, name or device "
            f"(and input, power)"
        )
    matches = [
        fields[0]
        for fields in devices
        if all(fields[1 + _KEYS.index(key)] == str(value) for key, value in keys.items())
    ]
    if len(matches) != 1:
        sensors = "; ".join(" ".join(filter(None, fields[1:])) for fields in devices) or "none"
        raise LabError(
            f"{given!r} of {rail} fits {len(matches)} sensors instead of one; known are: {sensors}"
        )
    other, unit = ("power1_input", "uW") if power else ("curr1_input", "mA")
    return f"{matches[0]}/in{number}_input", f"{matches[0]}/{other}", unit


@target_factory.reg_driver
@attr.s(eq=False)
class ScpiMeterDriver(RailMeterDriver):
    """Reads the rails of a ScpiMeter through PyVISA's pure Python back end, whatever its address is: a
    socket, VXI-11, HiSLIP or USB.
    """

    bindings = {"meter": {ScpiMeter}}  # noqa: RUF012  # Labgrid's form
    _instrument: Any
    """A message-based resource, whose methods the stubs of `open_resource` do not know."""

    def on_activate(self) -> None:
        """Begin a conversation with the instrument."""
        try:
            import pyvisa  # noqa: PLC0415  # slow to import, and only boards with a meter need it
        except ModuleNotFoundError:
            raise LabError(
                f"the meter {self.meter.visa} needs PyVISA: pip install 'evmperf[meter]'"
            ) from None

        meter = self.meter
        self._queries = {
            rail: _queries(rail, channel, meter.voltage, meter.current)
            for rail, channel in meter.rails.items()
        }
        self._manager = pyvisa.ResourceManager("@py")
        try:
            self._instrument = self._manager.open_resource(
                meter.visa,
                open_timeout=round(meter.timeout * 1000),
                timeout=round(meter.timeout * 1000),
                read_termination="\n",
                write_termination="\n",
                # So that an answer with stray bytes is an answer still, to be refused by its text.
                encoding="latin-1",
            )
        except (pyvisa.errors.Error, OSError, ValueError) as error:
            self._manager.close()
            raise self._silent(error, "cannot be reached") from error
        try:
            self._identity = f"{self._ask('*IDN?')} (SCPI)"
            if meter.setup:
                self._ask(meter.setup, "write")
        except LabError:
            self.on_deactivate()
            raise

    def on_deactivate(self) -> None:
        """End the conversation."""
        with contextlib.suppress(Exception):  # it may be gone already, in any of VISA's ways
            self._instrument.close()
        self._manager.close()

    def read(self, rails: Sequence[str]) -> Mapping[str, tuple[str, str]]:
        """Voltage in V and current in A of each rail as the instrument says them."""
        asked = {rail: [self._ask(query) for query in self._queries[rail]] for rail in rails}
        return {rail: (f"{volts} V", f"{amperes} A") for rail, (volts, amperes) in asked.items()}

    def _ask(self, query: str, way: str = "query") -> str:
        from pyvisa.errors import Error  # noqa: PLC0415  # see on_activate

        try:
            return str(getattr(self._instrument, way)(query)).strip()
        except (Error, OSError) as error:
            raise self._silent(error, f"does not answer {query!r}") from error

    def _silent(self, error: BaseException, what: str) -> LabError:
        found = f"the meter at {self.meter.visa} {what} ({one_line(error, 200)})"
        return LabError(f"{found}: check `visa` of ScpiMeter, its channels, and that nobody else uses it")


def _queries(rail: str, channel: object, voltage: str, current: str) -> tuple[str, str]:
    own = channel if isinstance(channel, dict) else {"channel": channel}
    if unknown := set(own) - {"channel", "voltage", "current"}:
        raise LabError(
            f"the meter's rail {rail} says {', '.join(sorted(map(str, unknown)))}: known are "
            f"channel, voltage and current"
        )
    number = str(own.get("channel", ""))
    volts, amperes = str(own.get("voltage", voltage)), str(own.get("current", current))
    if not number and "{channel}" in volts + amperes:
        raise LabError(f"the meter's rail {rail} names no channel")
    return volts.replace("{channel}", number), amperes.replace("{channel}", number)
