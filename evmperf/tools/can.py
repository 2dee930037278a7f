"""CAN frames sent by cangen and received by candump (can-utils), on one board.

cangen counts up in its frames' data (`-D i`), so candump's log (`-L`) shows missing, doubled and
disordered frames. The log of ten thousand frames is too long for a console: awk counts on the board
and prints the first and the last frame with the kernel's receive time stamps.
"""

import re
from decimal import Decimal

from evmperf.tools._checks import refuse, whole

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

_COUNT = r"""
BEGIN { hex = "0123456789ABCDEF"; before = -1 }
/^DROPCOUNT: dropped / { dropped += $3; next }
NF != 3 { unknown++; next }
{
  at = index($3, "##"); data = substr($3, at ? at + 3 : index($3, "#") + 1)
  number = 0
  for (i = 7; i > 0; i -= 2)
    number = number * 256 + 16 * (index(hex, substr(data, i, 1)) - 1) \
      + index(hex, substr(data, i + 1, 1)) - 1
  if (length(data) != digits) unknown++
  if (number <= before) disordered++
  else lost += number - before - 1
  before = number
  if (!received++) first = $1 " " number
  last = $1 " " number
}
END {
  print "received", received + 0; print "lost", lost + 0; print "dropped", dropped + 0
  print "disordered", disordered + 0; print "unknown", unknown + 0
  print "first", first; print "last", last
}
"""

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
    """Shell text that sends `frames` frames of `size` bytes as fast as they go, and counts what comes back
    into `$OUT/can.txt`.

    `echo` is for an interface on which the kernel hands what is sent to the other programs (vcan); a
    controller in loopback mode receives it itself. `around` may put something around the sending ({send}).
    """
    options = f"-g 0 -p 1000 -n {frames} -I {_IDENTIFIER} -L {size} -D i"
    send = " ".join(["cangen", interface, options, *(["-f", "-b"] if fd else []), *([] if echo else ["-x"])])
    sent = f"/sys/class/net/{interface}/statistics/tx_packets"
    listens = f"grep -qsw {interface} /proc/net/can/rcvlist_all"
    return (
        f"rm -f {LOG}; candump -L -d -r {frames * _FRAME_MEMORY} -n {frames} -T {_QUIET_MS} "
        f"{interface} >{LOG} & p=$!; n=0; until {listens}; do "
        f'kill -0 $p && [ $n -lt 50 ] || {{ echo "candump does not listen"; exit 1; }}; '
        f"n=$((n + 1)); sleep 0.1; done; "
        f"read before <{sent}; read began x </proc/uptime; "
        f"( {around.replace('{send}', send)} ) || {{ kill $p; exit 1; }}; "
        f"wait $p || exit; read after <{sent}; read ended x </proc/uptime; "
        f'{{ echo "sent $((after - before))"; echo "uptime $began $ended"; '
        f'{count(LOG, size)}; }} >"$OUT/{TEXT_FILE}"'
    )


def count(log: str, size: int) -> str:
    """Shell text that prints what is in candump's log of frames of `size` bytes."""
    return f"awk -v digits={2 * size} '{_COUNT}' {log}"


def transfer(text: str, frames: int) -> tuple[float, float]:
    """Frames received a second, and the percentage lost of the `frames` sent; raises RefusedOutput."""
    match = whole(_TEXT, text, "this is not the count of candump's log")
    number = {name: int(match[name]) for name in ("sent", "received", "lost", "first", "last")}
    for name in ("dropped", "disordered", "unknown"):
        refuse(match[name] != "0", f"candump's log has {match[name]} frames {name}", text)
    sent, lost, received, ended = number["sent"], number["lost"], number["received"], number["last"] + 1
    refuse(sent != frames, f"the interface sent {sent} frames, not {frames}", text)
    said = f"candump received {received} frames and missed {lost} up to the {ended}th of {frames}"
    refuse(received < 2 or received + lost != ended or ended > frames, said, text)
    # A float has too few digits for today's microseconds.
    took_s = float(Decimal(match["last_s"]) - Decimal(match["first_s"]))
    fits = 0 < took_s <= float(match["ended"]) - float(match["began"]) + _CLOCK_S
    refuse(not fits, f"{took_s:.6f} s between two frames: was the clock set?", text)
    return (received - 1) / took_s, 100.0 * (frames - received) / frames
