"""An interactive terminal on a board's serial console: pyserial's, which leaves by Ctrl-]."""

import subprocess
import sys

from evmperf.model.errors import UsageError
from evmperf.virtual.board import HOST

_MINITERM = ("-m", "serial.tools.miniterm", "--quiet", "--raw", "--eol", "CR")


def run(port: int) -> None:
    """Join this terminal with the console until Ctrl-] or the end; raises UsageError without a terminal."""
    if not sys.stdin.isatty():
        raise UsageError("standard input is not a terminal: run the console in one")
    # What it says when the bench has ended is a stack trace; the caller says it in a sentence.
    command = [sys.executable, *_MINITERM, f"socket://{HOST}:{port}"]
    subprocess.run(command, stderr=subprocess.DEVNULL, check=False)
