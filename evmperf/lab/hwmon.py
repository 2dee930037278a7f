"""Rails behind sensors that Linux shows below /sys/class/hwmon, here or on a machine over SSH.

Files and units are those of Documentation/hwmon/sysfs-interface.rst: `in1_input` in mV (of an
INA2xx the bus voltage), `curr1_input` in mA, `power1_input` in uW.
"""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evmperf.lab.tester import CommandTester, SshTester
from evmperf.model.errors import LabError, ToolError

_TIMEOUT_S = 20.0

_KEYS = ("label", "name", "device")
_LIST = """\
cd {root} && for h in hwmon*; do
  [ -e $h/name ] || continue
  l=; [ -r $h/label ] && read -r l <$h/label
  [ "$l" ] || { [ -r $h/device/label ] && read -r l <$h/device/label; }
  read -r n <$h/name
  d=$(readlink $h/device); echo "$h|$l|$n|${d##*/}"
done"""


@dataclass(frozen=True)
class _Sensor:
    """The files of a rail below the root, and the unit of the second."""

    voltage: str
    other: str
    unit: str


class Hwmon:
    """The sensors of some rails, found by label, name or device; raises LabError.

    `rails` maps each rail to the label of its sensor, or to a mapping; see `HwmonMeter`. `options`
    are further ones for ssh.
    """

    def __init__(self, host: str, root: str, rails: Mapping[str, Any], options: Sequence[str] = ()) -> None:
        self._host = host
        self._root = root
        self._shell = (
            SshTester(host, options, f"{host}, which has the board's sensors,")
            if host
            else CommandTester((), "this machine")
        )
        try:
            self._sensors, names = self._look(rails)
        except LabError:
            self.close()
            raise
        self.identity = f"{', '.join(names)} on {host or 'this machine'} (hwmon)"

    def _look(self, rails: Mapping[str, Any]) -> tuple[dict[str, _Sensor], list[str]]:
        """The sensor of each rail, and the chips there are."""
        listed = [line.split("|") for line in self._run(self._in(_LIST)).splitlines()]
        devices = [fields for fields in listed if len(fields) == len(_KEYS) + 1]
        sensors = {rail: _find(rail, given, devices) for rail, given in rails.items()}
        return sensors, sorted({fields[2] for fields in devices})

    def read(self, rails: Sequence[str]) -> dict[str, tuple[str, str]]:
        """Voltage in mV and current in mA (or power in uW) of each rail; raises LabError."""
        script = "cd {root} && " + " && ".join(
            f'read -r v <{sensor.voltage} && read -r i <{sensor.other} && echo "{index} $v {sensor.unit} $i"'
            for index, rail in enumerate(rails)
            for sensor in [self._sensors[rail]]
        )
        found = {}
        for line in self._run(self._in(script)).splitlines():
            fields = line.split()
            if len(fields) == 4 and fields[0].isdigit() and int(fields[0]) < len(rails):
                _, volts, unit, other = fields
                found[rails[int(fields[0])]] = (f"{volts} mV", f"{other} {unit}")
        if list(found) != list(rails):
            raise LabError(f"the sensors {self._where()} did not give a reading of every rail")
        return found

    def close(self) -> None:
        """Give up the connection, if there is one."""
        self._shell.close()

    def _in(self, script: str) -> str:
        return script.replace("{root}", shlex.quote(self._root))

    def _where(self) -> str:
        return f"on {self._host}" if self._host else "of this machine"

    def _run(self, script: str) -> str:
        try:
            reply = self._shell.run(script, _TIMEOUT_S)
        except ToolError:
            raise LabError(f"the sensors {self._where()} have not answered for {_TIMEOUT_S:g} s") from None
        if reply.status:
            said = reply.text.strip().splitlines() or ["no message"]
            raise LabError(f"the sensors {self._where()} cannot be read: {said[-1]}")
        return reply.text


def _find(rail: str, given: Any, devices: Sequence[Sequence[str]]) -> _Sensor:
    wanted = dict(given) if isinstance(given, dict) else {"label": given}
    number, power = wanted.pop("input", 1), wanted.pop("power", False)
    if not wanted or set(wanted) - set(_KEYS):
        raise LabError(
            f"the sensor of {rail} is described by {given!r}: give its label, name or device "
            f"(and input, power)"
        )
    found = [
        fields[0]
        for fields in devices
        if all(fields[1 + _KEYS.index(key)] == str(value) for key, value in wanted.items())
    ]
    if len(found) != 1:
        there = "; ".join(" ".join(filter(None, fields[1:])) for fields in devices) or "none"
        raise LabError(
            f"{len(found)} sensors are described by {given!r} for {rail} instead of one; there are: {there}"
        )
    other, unit = ("power1_input", "uW") if power else ("curr1_input", "mA")
    return _Sensor(f"{found[0]}/in{number}_input", f"{found[0]}/{other}", unit)
