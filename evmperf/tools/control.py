"""The control loop: a program that counts 2^27 down, and what it prints.

It comes with evmperf and runs without libraries, so that nothing on the board's image changes it: what
changes it is the board's clock, or who else uses the processor. It prints clock_gettime(2) of
CLOCK_MONOTONIC before and after the loop as struct timespec.
"""

import re
import struct

from evmperf.model.errors import RefusedOutput
from evmperf.tools._checks import refuse

LOOP, TEMPERATURES = "loop", "temperatures"
"""Output files of `script`."""
RUNS = 3
_TIMES = {32: "<4q", 16: "<4i"}
"""Two struct timespec by their size in bytes: of 64 and of 32 bits."""

# ELF headers, then: clock_gettime(1, sp); subs/bne from 0x8000000; clock_gettime(1, sp + 16 or 8);
# write(1, sp, 32 or 16); exit(0). selftests/measure/control_aarch64.s and control_arm.s are the source.
PROGRAMS = {
    "aarch64": (
        "7f454c460201010000000000000000000200b700010000007800010000000000400000000000000000000000"
        "0000000000000000400038000100000000000000010000000500000000000000000000000000010000000000"
        "0000010000000000c400000000000000c4000000000000000000010000000000ff8300d1280e80d2e1030091"
        "200080d2010000d40200a1d2420400f1e1ffff54e1430091200080d2010000d4080880d2200080d2e1030091"
        "020480d2010000d4a80b80d2000080d2010000d4"
    ),
    "arm": (
        "7f454c4601010100000000000000000002002800010000005400010034000000000000000000000534002000"
        "010000000000000001000000000000000000010000000100a4000000a4000000050000000000010010d04de2"
        "017ca0e3077087e20d10a0e10100a0e3000000ef0223a0e3012052e2fdffff1a08108de20100a0e3000000ef"
        "0470a0e30100a0e30d10a0e11020a0e3000000ef0170a0e30000a0e3000000ef"
    ),
}
"""ELF files by machine, in hexadecimal digits."""


def script(machine: str) -> str:
    """Shell text (POSIX sh, busybox too) that notes the temperatures, and runs the loop once to wake the
    governor and RUNS times more; "" for a machine (`uname -m`) without a program.
    """
    program = PROGRAMS.get("arm" if re.fullmatch(r"armv[78]\w*", machine) else machine, "")
    if not program:
        return ""
    octal = "".join(f"\\{octet:03o}" for octet in bytes.fromhex(program))
    runs = " ".join("." * (RUNS + 1))
    return (
        f'cat /sys/class/thermal/thermal_zone*/temp >"$OUT/{TEMPERATURES}" 2>/dev/null; '
        f"printf '{octal}' >$F/control; chmod +x $F/control; "
        f'for n in {runs}; do $F/control | od -An -v -tu1 || break; done >"$OUT/{LOOP}"; rm $F/control'
    )


def loop_ms(text: str) -> list[float]:
    """Milliseconds of each loop but the first; raises RefusedOutput for anything but RUNS + 1 of them."""
    widths = {len(line) for line in text.splitlines()}
    refuse(len(widths) > 1, "the control loop's times are not in columns", text)
    octets = [int(word) for word in text.split() if word.isdecimal() and len(word) <= 3]
    form = _TIMES.get(len(octets) // (RUNS + 1))
    if not form or len(octets) % (RUNS + 1) or len(octets) != len(text.split()) or max(octets) > 255:
        raise RefusedOutput("the control loop did not print its times", text)
    spans = [(b - a) * 1e3 + (d - c) / 1e6 for a, c, b, d in struct.iter_unpack(form, bytes(octets))]
    return spans[1:]


def celsius(text: str) -> float | None:
    """The highest temperature of the kernel's zones in degrees Celsius, None where there is none."""
    found = [int(word) / 1000 for word in text.split() if re.fullmatch(r"-?\d{1,6}", word)]
    return max(found, default=None)
