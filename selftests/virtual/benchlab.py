"""What the tests of the bench use to look at it from outside."""

import contextlib
import os
import select
from pathlib import Path


def processes(state):
    """All QEMUs that have this state folder in their command line."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = path.read_bytes()
            if os.fsencode(state) in words and b"-chardev" in words:
                found.append(int(path.parent.name))
    return found


def wait_for_end(pid):
    """Wait until the process is gone."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([handle], [], [], 30)[0], f"process {pid} lives on"
    finally:
        os.close(handle)
