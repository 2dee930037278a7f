"""A virtual EVM of our own, and load on this machine; both are gone afterwards, also on Ctrl-C."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from evmperf_virtual import client, image

from selftests.support import virtualbench

BURN = "import os\np = os.getppid()\nwhile os.getppid() == p:\n    for _ in range(10**6): pass"

_SOURCE = '#include <map>\n#include <regex>\nbool is(char *s) { return regex_match(s, std::regex("a+b")); }'
COMPILE = (
    "import os, subprocess\np = os.getppid()\nwhile os.getppid() == p:\n"
    f"    subprocess.run('g++ -O2 -x c++ -c - -o /dev/null'.split(), input={_SOURCE.encode()!r}, check=True)"
)
"""A compiler at work: processes that begin and end, files, memory."""


@dataclass(frozen=True)
class Board:
    """A running virtual EVM, and evmperf's way to it."""

    virtual: client.LabClient
    env_file: Path
    folder: Path
    """A scratch folder that goes with the board."""


@contextlib.contextmanager
def virtual_board(*, counted=False):
    """A virtual EVM on free ports with the power off; a `counted` one's clock goes 2 ns an instruction."""
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evmperf-bench-")))
        state = {"EVMPERF_STATE": str(folder / "state")}
        if counted:
            state["EVMPERF_CACHE"] = str(_one_thread(folder / "cache"))
        stack.enter_context(mock.patch.dict(os.environ, state))
        options = ("-smp", "1", "-icount", "shift=1") if counted else ()
        bench = stack.enter_context(virtualbench.running("virtual", "bench", options))
        yield Board(bench, virtualbench.board_file(bench, "virtual", folder), folder)


def _one_thread(cache):
    """A cache with an image whose QEMU has one thread for all: with more it does not count instructions."""
    built = image.build("virtual", progress=print).directory
    copy = shutil.copytree(built, cache / "virtual" / built.name, copy_function=os.symlink)
    (copy / "image.json").unlink()
    text = (built / "image.json").read_text()
    (copy / "image.json").write_text(text.replace("thread=multi", "thread=single"))
    return cache


def spare_from_load(board):
    """Let the bench process run before all others: in a lab it is another machine's job.

    False without the privilege to do that; the bench's own waits are then counted as ours.
    """
    policy = os.SCHED_FIFO | os.SCHED_RESET_ON_FORK  # QEMU stays as it is
    try:
        os.sched_setscheduler(board.virtual.status().pid, policy, os.sched_param(1))
    except PermissionError:
        return False
    return True


@contextlib.contextmanager
def burners(count, work=BURN):
    """So many processes that do nothing but `work` on a core each; they end with us in any case."""
    with contextlib.ExitStack() as stack:
        for _ in range(count):
            process = subprocess.Popen([sys.executable, "-c", work])
            stack.callback(process.wait)
            stack.callback(process.kill)
        yield
