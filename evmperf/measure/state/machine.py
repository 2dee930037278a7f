"""What slows a whole machine down: its host, limits of the shell's group, other load, CPUs that are missing.

None of it is a device's doing, so it comes before any device.
"""

import math
import re
from collections.abc import Collection, Iterator

from evmperf.measure.state.finding import Finding, cpus
from evmperf.model.results import OTHER_LOAD
from evmperf.model.state import State
from evmperf.model.units import MEBIBYTE

_TICKS = 100
"""Of the kernel's USER_HZ in a second."""
_BESIDE = 0.05
"""CPUs that another process may take."""
_BESIDE_S = 0.5
"""CPU time below which nothing is said of a process: the grain of its counters."""
_STARVED = 0.8
"""CPUs of another process from which on it may cost any amount: it waits for what it takes away."""
_ENDED = 0.15
"""CPUs, and new processes a second, below which nothing is said of what began and ended."""
_FORKS = 4.0
_WAITED = 1.15
"""How many times longer than it ran a virtual board may need for the same."""
_STOLEN = 0.05
"""Part of the CPUs' time that a host may take."""
_THROTTLED = 0.05
"""Part of the time in which a group may be held back."""
_INTERRUPTED = 0.7
"""Part of a CPU's time in interrupts from which on it is full of them."""
_SECTOR = 512
_LEAST_BYTES = 16 * MEBIBYTE
_FOREIGN = 0.4
"""Part of a disk's bytes that are not the case's."""
_TESTER_IDLE = 0.03
_LEAST_IDLE, _MOST_IDLE = 0.15, 0.4
"""Parts of the time that a full CPU, and another one, are idle."""
COMMAND = "command."
"""What names of commands of processes begin with; the number follows."""
_RATE = 1000.0
"""Interrupts a second from which on a device may fill a CPU."""


def judge(state: State, ours: Collection[str] = ()) -> list[Finding]:
    """What slowed the machine during a case; `ours` are the programs that belong to it."""
    rules = (host, _quota, _pinned, _offline, _interrupts, _shared_disk, _tester)
    return [*(one for rule in rules for one in rule(state)), *_beside(state, ours), *_ended(state, ours)]


def host(state: State) -> Iterator[Finding]:
    """What the host of a virtual board left to it."""
    ran, waited = (state.counted.get(f"host.{what}_ms", 0) for what in ("run", "wait"))
    # Where little else ran, threads of QEMU have waited for each other: the board itself is busy.
    is_alone = state.counted.get("host.busy_ms", ran + waited) < ran + waited
    if ran and not is_alone and (times := (ran + waited) / ran) > _WAITED:
        part = 1 - 1 / times
        reason = f"the virtual board's host was busy: its QEMU waited for a CPU for {part:.0%} of its time"
        yield Finding("host", reason, size=times, whole=True)
    ticks = {name: n for name, n in state.counted.items() if name.startswith("cpu_")}
    part = ticks.get("cpu_steal", 0) / max(sum(ticks.values()), 1)
    if part > _STOLEN:
        reason = f"the virtual board's host took {part:.0%} of its CPUs"
        yield Finding("host", reason, size=1 / max(1 - part, 0.01), whole=True)


def _quota(state: State) -> Iterator[Finding]:
    """The quota of a control group (Documentation/admin-guide/cgroup-v2.rst)."""
    throttled_s = state.counted.get("group.throttled_usec", 0) / 1e6
    quota = re.fullmatch(r"(\d{1,12}) (\d{1,12})", str(state.shown.get("group.cpu.max", "")))
    if quota and throttled_s > _THROTTLED * (state.seconds or 0.0):
        allowed = int(quota[1]) / max(int(quota[2]), 1)
        reason = (
            f"the shell's control group may use {allowed:.2g} CPUs (cpu.max), and was held back for "
            f"{throttled_s:.1f} s of {state.seconds or 0:.1f} s"
        )
        size = max(1.0, cpus(state.shown.get("cpu.online")) / allowed)
        yield Finding("quota", reason, size=size, whole=True, fact="group.cpu.max")


def _pinned(state: State) -> Iterator[Finding]:
    online, allowed = (cpus(state.shown.get(name)) for name in ("cpu.online", "shell.Cpus_allowed_list"))
    if 0 < allowed < online:
        fact = "shell.Cpus_allowed_list"
        reason = f"the shell may use {allowed} of {online} CPUs (Cpus_allowed_list {state.shown[fact]})"
        # What works in turns on one CPU loses more than its share.
        yield Finding("pinned", reason, whole=True, fact=fact)


def _offline(state: State) -> Iterator[Finding]:
    online, present = (cpus(state.shown.get(f"cpu.{name}")) for name in ("online", "present"))
    if 0 < online < present:
        reason = f"only {online} of {present} CPUs are online"
        yield Finding("offline", reason, size=present / online, whole=True, fact="cpu.online")


def _interrupts(state: State) -> Iterator[Finding]:
    """A CPU that is full of interrupts while another one idles, and whose they are."""
    if not state.seconds:
        return
    busy, idle = (
        {
            n.split("_")[0]: ticks / _TICKS / state.seconds
            for n, ticks in state.counted.items()
            if n.startswith("percpu.") and n.endswith(end)
        }
        for end in ("_interrupt", "_idle")
    )
    for name in dict.fromkeys((*busy, *idle)):
        cpu, part = name.removeprefix("percpu."), busy.get(name, 0.0)
        counts = {n: c for n, c in state.counted.items() if re.fullmatch(rf"irq\..*\.cpu{cpu}", n)}
        most = max(counts, key=lambda n: counts[n], default="")
        # A kernel with PREEMPT_RT does the work of an interrupt in a thread, and counts it as such.
        is_busy = counts.get(most, 0) / state.seconds > _RATE and idle.get(name, 0.0) < _LEAST_IDLE
        if not (part > _INTERRUPTED or is_busy) or max(idle.values(), default=0) < _MOST_IDLE:
            continue
        device = most.removeprefix("irq.").removesuffix(f".cpu{cpu}")
        whose = f": {counts[most] / state.seconds:.0f} a second of {device}" if most else ""
        listed = state.shown.get(f"irq.{device}.affinity")
        place = f" (smp_affinity_list {listed})" if listed is not None else ""
        reason = f"CPU {cpu} was full, {part:.0%} of its time in interrupts{whose}{place}; another one idled"
        yield Finding("interrupts", reason, whole=True)


def _shared_disk(state: State) -> Iterator[Finding]:
    """What a case's disk carried for others; requests of a file system's own are few, but for a journal of
    all data, which has each write once more.
    """
    twice = "data=journal" in str(state.after("mounted"))
    for way in ("read",) if twice else ("read", "write"):
        carried = state.counted.get(f"disk.{way}_sectors", 0) * _SECTOR
        own = state.counted.get(f"shell.{way}_bytes")
        if own is None or carried < _LEAST_BYTES or (part := 1 - own / carried) < _FOREIGN:
            continue
        reason = (
            f"the disk carried {carried / MEBIBYTE:.0f} MiB of {way}s, of which the case asked for "
            f"{own / MEBIBYTE:.0f} MiB"
        )
        yield Finding("shared disk", reason, size=1 / (1 - part) if part < _STARVED else 0.0)


def _tester(state: State) -> Iterator[Finding]:
    ticks = {n: c for n, c in state.counted.items() if n.startswith("tester.cpu_")}
    idle = sum(ticks.get(f"tester.cpu_{what}", 0) for what in ("idle", "iowait"))
    if sum(ticks.values()) > _TICKS and idle < _TESTER_IDLE * sum(ticks.values()):
        yield Finding("tester", "all CPUs of the tester were busy during the case")


def _beside(state: State, ours: Collection[str]) -> Iterator[Finding]:
    most_s = _others_s(state)
    for process, counted_s in state.beside.items():
        # A child's whole life is its parent's in the moment in which it is reaped.
        used_s = min(counted_s, most_s)
        share = used_s / state.seconds if state.seconds else 0.0
        if used_s >= _BESIDE_S and share > _BESIDE and process.rsplit(" (", 1)[0] not in ours:
            size = 1 / (1 - share) if share < _STARVED else 0.0
            reason = f"{OTHER_LOAD}{process}, with what it started, took {share:.0%} of a CPU"
            fact = f"{COMMAND}{process.rpartition(' (')[2][:-1]}"
            yield Finding("beside", reason, size=size, whole=True, fact=fact)


def _others_s(state: State) -> float:
    """CPU seconds that the case did not use itself; infinite where they were not counted."""
    counted = state.counted
    if "shell.own_ticks" not in counted or "cpu_user" not in counted:
        return math.inf
    busy = sum(counted.get(f"cpu_{what}", 0) for what in ("user", "nice", "system"))
    return (busy - sum(counted.get(f"shell.{what}_ticks", 0) for what in ("own", "thread"))) / _TICKS


def _ended(state: State, ours: Collection[str]) -> Iterator[Finding]:
    """Processes that began and ended in the case: CPU time that is nobody's who is still there."""
    counted, seconds = state.counted, state.seconds or 0.0
    used = _others_s(state) - sum(state.beside.values())
    if not seconds or math.isinf(used):
        return
    forks, share = counted.get("forks", 0) / seconds, used / seconds
    if used >= _BESIDE_S and share > _ENDED and forks > _FORKS:
        reason = (
            f"{OTHER_LOAD}{counted['forks']} processes began during the case ({forks:.0f} a second), and "
            f"those that ended and are not the case's took {share:.0%} of a CPU"
        )
        size = 1 / (1 - share) if share < _STARVED else 0.0
        yield Finding("beside", reason, size=size, whole=True)
