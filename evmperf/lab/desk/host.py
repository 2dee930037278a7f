"""Checks of this machine: its clock, its right to real-time priority, its serial ports, its coordinator."""

import ctypes
import socket
import subprocess
import sys
import time
from pathlib import Path

from evmperf.lab.desk.finding import Noted
from evmperf.model.errors import LabError

_ANSWER_S = 5.0
_TIMEX = 512
"""Bytes that hold the kernel's struct timex (208 on 64 bits); all zero, nothing is set by it."""
_TIME_ERROR = 5
"""adjtimex(2): the clock is not synchronised."""
_YEAR_2024 = 1_704_067_200
_RAISE = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"


def answers(coordinator: str) -> str:
    """Say that something listens at HOST:PORT; raises LabError."""
    host, _, port = coordinator.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), _ANSWER_S):
            return f"{coordinator} answers"
    except (OSError, ValueError) as error:
        raise LabError(
            f"nothing answers at {coordinator} ({error}): start labgrid-coordinator there, or set "
            f"LG_COORDINATOR to where it runs"
        ) from None


def clock() -> str:
    """Say that this machine's clock is right as far as it knows; raises LabError or Noted."""
    now = time.time()
    if now < _YEAR_2024:
        raise LabError(
            f"the date of this machine is {time.strftime('%Y-%m-%d', time.gmtime(now))}: set it, as "
            f"every result carries the time of day"
        )
    if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX)) == _TIME_ERROR:
        raise Noted(
            "this machine's clock is not synchronised: start chrony or systemd-timesyncd, as runs "
            "of several machines are put in order by the time of day (boot times are not touched)"
        )
    return "synchronised"


def real_time() -> str:
    """Say that a process of ours gets real-time priority; raises Noted."""
    asked = subprocess.run([sys.executable, "-c", _RAISE], capture_output=True, timeout=30, check=False)
    if asked.returncode:
        raise Noted(
            "no right to real-time priority: boot times are refused while this machine is busy; "
            'with `echo "$USER - rtprio 1" | sudo tee -a /etc/security/limits.conf` and a new login they '
            "are not"
        )
    return "the console's clock gets real-time priority"


def usb_uart(port: str, ttys: Path = Path("/sys/class/tty")) -> str:
    """Which UART of a USB adapter a local serial port is, and its others; "" for no such port."""
    device = (ttys / Path(port).resolve().name / "device").resolve()
    interface = next(
        (folder for folder in (device, device.parent) if (folder / "bInterfaceNumber").exists()), None
    )
    if interface is None:
        return ""
    adapter = interface.parent
    numbers = sorted(
        (folder / "bInterfaceNumber").read_text().strip()
        for folder in adapter.glob("*:*")
        if any(folder.glob("ttyUSB*")) or any(folder.glob("tty/*"))
    )
    mine = (interface / "bInterfaceNumber").read_text().strip()
    product = adapter / "product"
    name = product.read_text().strip() if product.exists() else "a USB adapter"
    return f"ID_USB_INTERFACE_NUM {mine} of {', '.join(numbers)} on {name}"
