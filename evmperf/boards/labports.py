"""Where the lab of a virtual EVM listens, as its board file says."""

import re

from evmperf.boards.board import Board
from evmperf.model.errors import UsageError

HOST = "127.0.0.1"
"""All of it is on loopback."""


def lab_ports(board: Board) -> tuple[int, int]:
    """The lab's serial and power port in a board file; raises UsageError for one without them."""
    serial, power = (board.resources.get(f"Network{kind}Port", {}) for kind in ("Serial", "Power"))
    address = re.fullmatch(rf"http://{re.escape(HOST)}:(\d+)/power/\{{index\}}", str(power.get("host", "")))
    if not isinstance(serial.get("port"), int) or not address:
        raise UsageError(
            f"{board.file} does not name the ports of its virtual EVM: set NetworkSerialPort.port, and "
            f"NetworkPowerPort.host to http://{HOST}:PORT/power/{{index}}"
        )
    return serial["port"], int(address[1])
