"""What the lab's host left to its virtual EVMs: the time that their CPUs ran, and waited to run; and how much
slower it is for what else runs there.
"""

import os
from collections.abc import Mapping
from pathlib import Path

_QEMU = b"qemu-system"
_BYTES = 4096
_PROC = Path("/proc")
BUSY = 1.5
"""How many times slower a host is that is worth a word."""
_MOST = 20.0
"""A host that is slower than this is no place for a virtual EVM: its limits grow no more."""


def slowness(proc: Path = _PROC) -> float:
    """How many times longer work takes than on an idle host: processes that run or wait (the larger of now
    and of a minute's mean, proc_loadavg(5)) per processor; 1 to 20, and 1 where that is not told.
    """
    try:
        mean, _, _, now, _ = (proc / "loadavg").read_text().split()
        waiting = max(float(mean), float(now.partition("/")[0]) - 1)  # but for who asks
    except (OSError, ValueError):
        return 1.0
    return min(max(waiting / (os.cpu_count() or 1), 1.0), _MOST)


def counters(proc: Path = _PROC) -> Mapping[str, int]:
    """Milliseconds that the threads of QEMU have run, and waited for a CPU of the host (the kernel's
    Documentation/scheduler/sched-stats.rst); {} where there is none, or the kernel does not count.
    """
    run_ns = wait_ns = 0
    for name in proc.glob("[0-9]*/cmdline"):
        try:
            # A loader may have started it, whose name the process has then.
            if _QEMU not in name.read_bytes()[:_BYTES]:
                continue
            for thread in name.parent.glob("task/*/schedstat"):
                run, wait, _ = map(int, thread.read_text().split())
                run_ns, wait_ns = run_ns + run, wait_ns + wait
        except (OSError, ValueError):  # it has ended
            continue
    return {"host.run_ms": run_ns // 10**6, "host.wait_ms": wait_ns // 10**6} if run_ns else {}
