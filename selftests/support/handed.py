"""A command on a terminal of its own, with somebody scripted at its keys."""

import os
import pty
import select
import subprocess
import time

from evmperf.boards.board import ENV_DIR
from evmperf.measure.hostload import slowness


def by_hand(words, act, within_s=120):
    """Run it on a terminal of its own; `act` gets what it said so far and returns what is typed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        words, cwd=ENV_DIR.parent, stdin=follower, stdout=follower, stderr=follower, start_new_session=True
    )
    os.close(follower)
    said, deadline = "", time.monotonic() + within_s * slowness()
    try:
        while time.monotonic() < deadline:
            if not select.select([leader], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(leader, 65536)
            except OSError:
                break
            said += data.decode("utf-8", "replace")
            if typed := act(said):
                os.write(leader, typed)
        return process.wait(20 * slowness()), said
    finally:
        process.kill()
        process.wait()
        os.close(leader)
