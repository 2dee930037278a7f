"""A board that another process holds."""

import contextlib
import os
import subprocess
import sys

from evmperf.lab.keeping.claim import JOIN
from selftests.support.programs import REPOSITORY

HOLD = """
import os, subprocess, sys
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.wanted import Wanted
from evmperf.model.errors import EvmperfError
place, coordinator, devices, run, wait_s = sys.argv[1:]
wanted = Wanted(place, coordinator, tuple(devices.split(",")) if devices else ())
def tell(sentence):
    print("told:", sentence, flush=True)
try:
    claim = Claim.take(wanted, run, wait_s=float(wait_s), tell=tell)
except EvmperfError as error:
    sys.exit(f"refused ({error.kind}): {error}")
claim.on_lost = lambda sentence: tell(f"lost: {sentence}")
print("held", flush=True)
for line in sys.stdin:
    what, _, word = line.strip().partition(" ")
    if what == "child":  # as a night and an A/B start their sessions
        subprocess.Popen([sys.executable, "-c", os.environ["CHILD"]], close_fds=False)
    else:
        claim.expect(float(word))
    print("done", flush=True)
claim.close()
print("released", flush=True)
"""


class Other:
    """A process that takes a board; it releases it when its input ends."""

    def __init__(self, wanted, run, wait_s, **more):
        words = [wanted.place, wanted.coordinator, ",".join(wanted.devices), run, str(wait_s)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLD, *words],
            cwd=REPOSITORY,
            env={**os.environ, **more},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            close_fds=JOIN not in more,
        )

    def line(self):
        """The next line that it says, "" when it is refused."""
        return self.process.stdout.readline().strip()

    def do(self, *words):
        """Let it start a child, or say until when it needs its board; returns its answer."""
        print(*words, file=self.process.stdin, flush=True)
        return self.line()

    def refused(self):
        """Why it has not got the board."""
        said, why = self.process.communicate()
        assert "held" not in said.splitlines()
        return why.strip()

    def release(self):
        """Let it give the board back, and wait for its end."""
        self.process.stdin.close()
        assert self.line() == "released"
        assert self.process.wait() == 0


@contextlib.contextmanager
def other(wanted, run="run-2", wait_s=0.0, **more):
    """Such a process, which is killed at the end."""
    it = Other(wanted, run, wait_s, **more)
    try:
        yield it
    finally:
        it.process.kill()
        it.process.wait()
        for pipe in (it.process.stdin, it.process.stdout, it.process.stderr):
            with contextlib.suppress(OSError):
                pipe.close()
