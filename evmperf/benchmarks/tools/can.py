"""CAN frames sent by cangen and received by candump (can-utils), on one board.

cangen counts up in its frames' data (`-D i`). candump's log (`-L`) is too long for a console: awk counts on
the board, and prints the first and the last frame with the kernel's receive time stamps.
"""

import re
from decimal import Decimal

from evmperf.benchmarks.tools._checks import refuse, whole
from evmperf.model.shelltext import ShellTexts

TEXT_FILE = "can.txt"
LOG = "/dev/shm/evmperf-candump"
"""candump's log, on the board and in memory."""

_IDENTIFIER = "123"
_QUIET_MS = 5000
"""candump ends after that long without a frame: frames were lost."""
_FRAME_MEMORY = 1024
"""Maximum bytes that the kernel needs for an unread frame."""
_CLOCK_S = 0.02
"""/proc/uptime has hundredths of a second, and is read twice."""

_SHELL = ShellTexts(__file__)
_TEXT = re.compile(
    r"sent (?P<sent>\d+)\n"
    r"uptime (?P<began>\d+\.\d\d) (?P<ended>\d+\.\d\d)\n"
    r"received (?P<received>\d+)\n"
    r"lost (?P<lost>\d+)\n"
    r"dropped (?P<dropped>\d+)\n"
    r"disordered (?P<disordered>\d+)\n"
    r"unknown (?P<unknown>\d+)\n"
    r"first \((?P<first_s>\d+\.\d{6})\) (?P<first>\d+)\n"
    r"last \((?P<last_s>\d+\.\d{6})\) (?P<last>\d+)\n"
)


def command(interface: str, *, frames: int, size: int, fd: bool, echo: bool, around: str = "{send}") -> str:
    """Shell text that sends `frames` frames of `size` bytes as fast as they go, and counts what comes back.

    `echo` is for an interface on which the kernel hands what is sent to other programs (vcan); a controller
    in loopback mode receives it itself. `around` may put something around the sending ({send}).
    """
    options = f"-g 0 -p 1000 -n {frames} -I {_IDENTIFIER} -L {size} -D i"
    send = " ".join(["cangen", interface, options, *(["-f", "-b"] if fd else []), *([] if echo else ["-x"])])
    about = {"i": interface, "log": LOG, "sent": f"/sys/class/net/{interface}/statistics/tx_packets"}
    counts = {"memory": frames * _FRAME_MEMORY, "frames": frames, "digits": 2 * size, "quiet_ms": _QUIET_MS}
    return _SHELL("send", **about, **counts, around=around.replace("{send}", send), text_file=TEXT_FILE)


def count(log: str, size: int) -> str:
    """Shell text that prints what is in candump's log of frames of `size` bytes."""
    return _SHELL("count", digits=2 * size, log=log)


def transfer(text: str, frames: int) -> tuple[float, float]:
    """Frames received a second, and the percentage lost of the `frames` sent; raises RefusedOutput."""
    match = whole(_TEXT, text, "this is not the count of candump's log")
    number = {name: int(match[name]) for name in ("sent", "received", "lost", "first", "last")}
    for name in ("dropped", "disordered", "unknown"):
        refuse(match[name] != "0", f"candump's log has {match[name]} frames {name}", text)
    sent, lost, received, ended = number["sent"], number["lost"], number["received"], number["last"] + 1
    refuse(sent != frames, f"the interface sent {sent} frames, not {frames}", text)
    reason = f"candump received {received} frames and missed {lost} up to the {ended}th of {frames}"
    refuse(received < 2 or received + lost != ended or ended > frames, reason, text)
    # A float has too few digits for today's microseconds.
    took_s = float(Decimal(match["last_s"]) - Decimal(match["first_s"]))
    fits = 0 < took_s <= float(match["ended"]) - float(match["began"]) + _CLOCK_S
    refuse(not fits, f"{took_s:.6f} s between two frames: was the clock set?", text)
    return (received - 1) / took_s, 100.0 * (frames - received) / frames
