"""An interactive terminal on a board's serial console."""

import os
import select
import socket
import sys
import termios
import tty

from evmperf.model.errors import LabError, UsageError
from evmperf.virtual.board import HOST

_LEAVE = b"\x1d"  # Ctrl-]


def run(port: int) -> None:
    """Join this terminal with the console until Ctrl-] or the end; raises UsageError or LabError."""
    if not sys.stdin.isatty():
        raise UsageError("standard input is not a terminal: run the console in one")
    keyboard, screen = sys.stdin.fileno(), sys.stdout.fileno()
    try:
        line = socket.create_connection((HOST, port), timeout=5)
    except OSError as error:
        raise LabError(f"the console on {HOST}:{port} cannot be reached: {error}") from None
    with line:
        line.settimeout(None)
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        before = termios.tcgetattr(keyboard)
        try:
            tty.setraw(keyboard)
            _join(line, keyboard, screen)
        except ConnectionError:
            pass  # The bench has ended, which the caller says.
        finally:
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def _join(line: socket.socket, keyboard: int, screen: int) -> None:
    while True:
        ready, _, _ = select.select([line.fileno(), keyboard], [], [])
        if line.fileno() in ready:
            output = line.recv(65536)
            if not output:
                return
            while output:
                output = output[os.write(screen, output) :]
        if keyboard in ready:
            typed = os.read(keyboard, 4096)
            keep, leave, _ = typed.partition(_LEAVE)
            line.sendall(keep)
            if leave or not typed:
                return
