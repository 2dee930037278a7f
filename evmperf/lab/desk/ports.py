"""Serial ports of this machine, and what talks on them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import serial
from serial.tools import list_ports

from evmperf.model.concealing import Typed
from evmperf.model.errors import LabError, UsageError

RATES = (115200, 1_500_000, 921_600, 57_600, 9_600)
"""Baud rates of boards' consoles, the usual one first."""
_LISTEN_S = 1.2
_FURTHER_S = 0.5
"""How long a port is listened to at the usual rate, and at each further one."""
_KEEP = 8192
_VT100 = re.compile(r"\x1b\[[\d;?]*[A-Za-z]")
_TALKS = (
    ("U-Boot", re.compile(r"(?:^|\n)[^\n]{0,24}(?:=>|#>|U-Boot>) ?\Z")),
    ("rescue", re.compile(r"(?:^|\n)(?:\(initramfs\)|(?:dracut|switch_root|emergency):[^\s#]*#) ?\Z")),
    ("login", re.compile(r"(?:^|\n)(?:[^\s:]+ )?login: ?\Z")),
    ("password", re.compile(r"assword[^\n:]{0,40}: ?\Z")),
    ("Linux", re.compile(r"(?:^|\n)[\x20-\x7e]{0,80}[#$] ?\Z")),
)
"""How the end of what was said tells what talks; the first that fits."""
_TEXT = re.compile(r"[\x20-\x7e\s]{80}")
"""What no other baud rate looks like."""
_GARBLED = re.compile(r"[^\x20-\x7e\s]")
_FEW = 8
"""Characters that a line picks up when it is opened or switched on."""


@dataclass(frozen=True)
class Voice:
    """A serial port: its device, what its USB chip says of itself, and what talks on it at a baud rate
    (`U-Boot`, `rescue`, `login`, `password`, `Linux`, `text` without a prompt, `garbled`, or "").
    """

    path: str
    usb: str = ""
    talks: str = ""
    baud: int = RATES[0]


def usb_ports() -> list[Voice]:
    """The USB serial ports of this machine, all interfaces of each chip, with the number of the interface as
    udev has it where the chip has several.
    """
    ports = []
    for one in sorted(list_ports.comports()):
        if one.vid is not None:
            _, _, number = (one.location or "").partition(":1.")
            interface = f", ID_USB_INTERFACE_NUM {int(number):02x}" if number.isdecimal() else ""
            chip = f"{one.product or one.description or 'USB'}, {one.vid:04x}:{one.pid:04x}"
            ports.append(Voice(one.device, f"{chip}{interface}"))
    return ports


def heard(text: str) -> str:
    """What talks, by the end of what it said."""
    end = _VT100.sub("", text).replace("\r", "")[-400:]
    return next((name for name, pattern in _TALKS if pattern.search(end)), "")


def listen(ports: Iterable[Voice]) -> tuple[list[Voice], list[str]]:
    """What talks on each port, all at once, and which could not be opened, one sentence each.

    A newline is sent to each, which a prompt answers, and nothing else.
    """
    troubles: list[str] = []
    with contextlib.ExitStack() as stack:
        lines = {}
        for port in ports:
            try:
                lines[port] = stack.enter_context(PortLine(port.path, RATES[0]))
            except LabError as error:
                troubles.append(str(error))
        with ThreadPoolExecutor(len(lines) or 1) as pool:
            return list(pool.map(_listened, lines, lines.values())), troubles


def _listened(port: Voice, line: PortLine) -> Voice:
    """The port with what talks on it, at the first rate at which that can be told."""
    seen = port
    for rate in RATES:
        line.set_rate(rate)
        line.send("\n")
        output, deadline = "", time.monotonic() + (_LISTEN_S if rate == RATES[0] else _FURTHER_S)
        while time.monotonic() < deadline:
            time.sleep(0.02)
            output = (output + line.read())[-_KEEP:]
            if talks := heard(output):
                return replace(port, talks=talks, baud=rate)
        text = _VT100.sub("", output).strip()
        if _TEXT.search(text):
            return replace(port, talks="text", baud=rate)
        garbled = bool(_GARBLED.search(text))
        if len(text) > _FEW and not (garbled and seen.talks):
            seen = replace(port, talks="garbled" if garbled else "text", baud=rate)
    return seen


class PortLine:
    """A serial port that is open."""

    def __init__(self, path: str, baud: int) -> None:
        self.path = path
        try:
            self._serial = serial.Serial(path, baud, timeout=0, write_timeout=2, exclusive=True)
        except (OSError, ValueError) as error:
            raise LabError(_trouble(path, error)) from error

    def __enter__(self) -> PortLine:
        return self

    def __exit__(self, *_: object) -> None:
        self._serial.close()

    def set_rate(self, baud: int) -> None:
        """Go on at another baud rate."""
        if self._serial.baudrate != baud:
            self._serial.baudrate = baud

    def read(self) -> str:
        """What has arrived."""
        with self._named():
            return bytes(self._serial.read(_KEEP)).decode("utf-8", "replace")

    def send(self, text: str) -> None:
        """Type something."""
        with self._named():
            self._serial.write(text.encode())

    def ask(self, text: str, until: re.Pattern[str], within_s: float, *, secret: str = "") -> str:
        """Type something or a `secret` line; returns what is said until that shows. Raises UsageError."""
        typed = Typed(secret.encode())
        self.send(f"{secret}\n" if secret else text)
        output, deadline = "", time.monotonic() + within_s
        while not until.search(_VT100.sub("", output).replace("\r", "")):
            if time.monotonic() > deadline:
                raise UsageError(
                    f"{self.path}: no answer within {within_s:g} s; last output {output[-120:]!r}"
                )
            time.sleep(0.02)
            with self._named():
                news = typed.without(self._serial.read(_KEEP))
            output = (output + news.decode("utf-8", "replace"))[-16 * _KEEP :]
        return _VT100.sub("", output).replace("\r", "")

    @contextlib.contextmanager
    def _named(self) -> Iterator[None]:
        try:
            yield
        except (OSError, serial.SerialException) as error:
            raise LabError(_trouble(self.path, error)) from error


def _trouble(path: str, error: Exception) -> str:
    number, group = getattr(error, "errno", None), "dialout"
    if number == 13:
        with contextlib.suppress(OSError, KeyError):
            group = Path(path).group()
        return (
            f"{path} may not be opened by this user: `sudo usermod -a -G {group} $USER`, and log in again; "
            f"without sudo, measure a board on the network: evmperf desk root@ADDRESS"
        )
    if number in (11, 16):
        return f"{path} is in use by another program: end it (picocom, minicom, ser2net)"
    return f"{path} cannot be opened: {error}"
