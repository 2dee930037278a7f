"""How long the kernel keeps what a serial port has received.

A port's interrupt puts bytes into a buffer, and a kernel thread without real-time priority brings
them to where they can be read (Linux, drivers/tty/tty_buffer.c: flush_to_ldisc on a work queue).
While every core is busy that thread waits, and nobody who reads can see for how long. A byte
through a terminal of our own, which takes the same queue, tells.
"""

import os
import time
import tty


class Sentinel:
    """A byte that is always on its way through the kernel's terminal layer."""

    def __init__(self) -> None:
        self._master, self._slave = os.openpty()
        tty.setraw(self._slave)
        os.set_blocking(self._slave, False)
        self._settled_ns = self._send()

    def settled_ns(self) -> int:
        """Until when (CLOCK_MONOTONIC, ns) what a port had received by then can be read by now."""
        try:
            os.read(self._slave, 16)
        except BlockingIOError:
            return self._settled_ns
        self._settled_ns = self._sent_ns
        self._send()
        return self._settled_ns

    def close(self) -> None:
        """Give up the terminal."""
        os.close(self._master)
        os.close(self._slave)

    def _send(self) -> int:
        self._sent_ns = time.monotonic_ns()
        os.write(self._master, b".")
        return self._sent_ns
