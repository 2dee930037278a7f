"""The control loop: a program that counts 2^27 down, without libraries, so that only the board's clock and
other users of the processor change it. It prints CLOCK_MONOTONIC before and after as struct timespec.
"""

import re
import struct

from evmperf.benchmarks.tools._checks import refuse
from evmperf.model.errors import RefusedOutput
from evmperf.model.shelltext import ShellTexts

LOOP, TEMPERATURES = "loop", "temperatures"
"""Output files of `script`."""
RUNS = 3
_MILLICELSIUS = range(-60_000, 200_001)
"""What a thermal sensor may read."""
_TIMES = {32: "<4q", 16: "<4i"}
"""Two struct timespec by their size in bytes: of 64 and of 32 bits."""

_SHELL = ShellTexts(__file__)


def program(machine: str) -> bytes:
    """The ELF file of the loop for `aarch64` or `arm`."""
    return bytes.fromhex(_SHELL(machine))


def script(machine: str) -> str:
    """Shell text (POSIX sh, busybox too) that notes the temperatures, and runs the loop once to wake the
    governor and RUNS times more; "" for a machine (`uname -m`) without a program.
    """
    name = "arm" if re.fullmatch(r"armv[78]\w*", machine) else machine
    if name not in ("arm", "aarch64"):
        return ""
    octal, runs = "".join(f"\\{octet:03o}" for octet in program(name)), " ".join("." * (RUNS + 1))
    return _SHELL("loop", octal=octal, runs=runs, loop_file=LOOP, temperatures=TEMPERATURES)


def loop_ms(text: str) -> list[float]:
    """Milliseconds of each loop but the first; raises RefusedOutput for anything but RUNS + 1 of them."""
    widths = {len(line) for line in text.splitlines()}
    refuse(len(widths) > 1, "the control loop's times are not in columns", text)
    octets = [int(word) for word in text.split() if word.isdecimal() and len(word) <= 3]
    form = _TIMES.get(len(octets) // (RUNS + 1))
    if not form or len(octets) % (RUNS + 1) or len(octets) != len(text.split()) or max(octets) > 255:
        raise RefusedOutput("the control loop did not print its times", text)
    times = [s * 1e3 + ns / 1e6 for s, ns in struct.iter_unpack(form[0] + form[2] * 2, bytes(octets))]
    refuse(times != sorted(times), "the control loop's times are not in order", text)
    return [after - before for before, after in zip(times[::2], times[1::2], strict=True)][1:]


def celsius(text: str) -> float | None:
    """The highest temperature of the kernel's zones (`temp` in millidegrees, Documentation/ABI/testing/
    sysfs-class-thermal) in degrees Celsius, None where there is none or the text is not whole.
    """
    if not re.fullmatch(r"(?:-?\d+\n)+", text):
        return None
    millidegrees = [value for line in text.splitlines(True) if (value := millicelsius(line)) is not None]
    return max(millidegrees) / 1000 if millidegrees else None


def millicelsius(line: str) -> int | None:
    """A zone's temperature as the kernel prints it; None without its end, or for what no chip has."""
    whole = re.fullmatch(r"(-?\d{4,6})\n", line)
    return int(whole[1]) if whole and int(whole[1]) in _MILLICELSIUS else None
