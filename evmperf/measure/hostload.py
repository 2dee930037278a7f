"""What the lab's host left to its virtual EVMs: the time that their CPUs ran, and waited to run."""

from collections.abc import Mapping
from pathlib import Path

_QEMU = b"qemu-system"
_BYTES = 4096
_PROC = Path("/proc")


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
