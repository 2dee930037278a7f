"""What the lab's host left to a virtual EVM: the time that its CPUs ran, and waited to run; and how much
slower the host is for what else runs there.
"""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

_QEMU = b"qemu-system"
_BYTES = 4096
_LISTENS = "0A"
"""Of a socket in /proc/net/tcp (proc(5))."""
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


def counters(serial_port: int, proc: Path = _PROC) -> Mapping[str, int]:
    """Milliseconds that the threads of the QEMU behind a serial port of this host have run, and waited for a
    CPU (the kernel's Documentation/scheduler/sched-stats.rst), and that all of the host has run; {} where
    there is none, or the kernel does not count.
    """
    lab = _listener(serial_port, proc)
    for name in proc.glob("[0-9]*/cmdline") if lab else ():
        try:
            # A loader may have started it, whose name the process has then.
            if _QEMU not in name.read_bytes()[:_BYTES] or lab not in _parents(name.parent):
                continue
            times = [thread.read_text().split() for thread in name.parent.glob("task/*/schedstat")]
            run_ns, wait_ns = (sum(int(one[column]) for one in times) for column in (0, 1))
            busy_ms = _busy_ms(proc)
        except (OSError, ValueError, IndexError):  # it has ended
            continue
        counts = {"host.run_ms": run_ns // 10**6, "host.wait_ms": wait_ns // 10**6, "host.busy_ms": busy_ms}
        return counts if run_ns else {}
    return {}


def _busy_ms(proc: Path) -> int:
    """Milliseconds that the host's CPUs have worked: user, nice, system, irq and softirq of proc_stat(5)."""
    ticks = (proc / "stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(ticks[column]) for column in (0, 1, 2, 5, 6)) * 1000 // os.sysconf("SC_CLK_TCK")


def _listener(port: int, proc: Path) -> str:
    """The number of the process that listens at a TCP port of this host, "" where that is not told."""
    try:
        rows = [line.split() for line in (proc / "net/tcp").read_text().splitlines()[1:]]
    except OSError:
        return ""
    sockets = {f"socket:[{row[9]}]" for row in rows if row[1].endswith(f":{port:04X}") and row[3] == _LISTENS}
    for link in proc.glob("[0-9]*/fd/*") if sockets else ():
        try:
            if str(link.readlink()) in sockets:
                return link.parts[-3]
        except OSError:  # it has ended, or is another user's
            continue
    return ""


def _parents(process: Path) -> Iterator[str]:
    """The numbers of a process's parents, and its own."""
    number = process.name
    while number not in ("0", ""):
        yield number
        number = (process.parent / number / "stat").read_text().rpartition(")")[2].split()[1]
