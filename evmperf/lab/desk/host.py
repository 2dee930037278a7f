"""Checks of this machine: its clock and its right to real-time priority."""

import ctypes
import subprocess
import sys
import time

from evmperf.lab.desk.finding import Noted

_TIMEX = 512
"""Bytes that hold the kernel's struct timex (208 on 64 bits); all zero, nothing is set by it."""
_TIME_ERROR = 5
"""adjtimex(2): the clock is not synchronised."""
_RAISE = "import os; os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))"


def clock() -> str:
    """Say that this machine's clock is right as far as the kernel knows; raises Noted."""
    if ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(_TIMEX)) == _TIME_ERROR:
        raise Noted(
            f"this machine's clock is not synchronised (today is {time.strftime('%Y-%m-%d')}?): start "
            "chrony or systemd-timesyncd, as runs of several machines are put in order by the time of day "
            "(boot times are not touched)"
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
