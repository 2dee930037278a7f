"""What spoils a figure: rules over the state around a case, each with its reason.

What changed during the case refuses its figures; what held before and after marks them.
"""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from evmperf.model.state import State, Value

CLOCK = 0.01
"""By how much of itself a board's clock may differ from the lab's."""
_BESIDE = 0.05
"""CPUs that another process may take."""
_BESIDE_S = 0.5
"""CPU time below which nothing is said of a process: the grain of its counters."""

_LIVE = re.compile(
    r"pci\..*\.current_link_\w+|usb\..*\.speed|net\.(?:speed|duplex)"
    r"|mmc\.ios\.(?:timing_spec|bus_width)|cpu\.\w+\.scaling_(?:max_freq|governor)"
)
"""Modes that must stay during a case. UFS shifts gears by itself, idle cards lose their clock."""
NO_LINK: frozenset[Value] = frozenset((-1, "unknown", "Unknown", "0 Hz"))
"""What an idle port or card says."""
_ERRORS = re.compile(r"mmc\.err_stats\..*|pci\..*\.aer_.*|net\.[rt]x_crc_errors|ethtool-S\..*(?i:crc).*")
_COOLING = re.compile(r"cooling_device\d+")
_DIRTY = 0.05
"""Part of the memory that waits for a disk when a case begins; and at least `_DIRTY_KIB`."""
_DIRTY_KIB = 32 * 1024
_SCARCE = 0.1
"""Part of the memory below which a case has too little of it."""
_SENT_AGAIN = 0.001
"""Part of TCP's segments that is sent twice on a cable that loses some."""
_SHAPERS = re.compile(r"qdisc (?:netem|tbf|cake|htb|hfsc) .*")


@dataclass(frozen=True)
class Finding:
    """What a rule says; `refuses` where the figures cannot be vouched for. `size` is how many times
    lower a figure may be by it at most, 0 where that is not known.
    """

    rule: str
    reason: str
    refuses: bool = False
    size: float = 0.0


def judge(state: State, ours: Collection[str] = ()) -> list[Finding]:
    """What spoiled a case; `ours` are the programs that belong to it."""
    rules = (_changed, _errors, _throttled, _limited, _narrow, _offline, _memory, _cable)
    found = [finding for rule in rules for finding in rule(state)]
    return [*clock(state.clock), *found, *_beside(state, ours)]


def clock(rate: tuple[float, float] | None) -> Iterator[Finding]:
    """Whether a board's clock is wrong: its seconds in one of the lab, at least and at most."""
    least, most = rate or (1.0, 1.0)
    if least > 1 + CLOCK or most < 1 - CLOCK:
        nearest = least if least > 1 else most
        yield Finding(
            "clock",
            f"the board's clock runs {nearest:.3f} s per second of the lab, so all its times are "
            f"wrong: check the counter's frequency in its device tree",
            refuses=True,
        )


def _changed(state: State) -> Iterator[Finding]:
    asleep = "0 Hz" in (state.shown.get("mmc.ios.clock"), state.after("mmc.ios.clock"))
    for name, now in state.changed.items():
        if asleep and name.startswith("mmc."):
            continue
        before = state.shown.get(name)
        if _LIVE.fullmatch(name) and not {before, now} & {None, *NO_LINK}:
            reason = f"{name} went from {before} to {now} during the case"
            yield Finding("changed", reason, refuses=True)


def _errors(state: State) -> Iterator[Finding]:
    for name, count in state.counted.items():
        if _ERRORS.fullmatch(name):
            yield Finding("errors", f"{name} rose by {count} during the case", refuses=True)


def _throttled(state: State) -> Iterator[Finding]:
    for name, kind in state.shown.items():
        device = name.removesuffix(".type")
        if not (_COOLING.fullmatch(device) and re.search("cpu|proc", str(kind), re.IGNORECASE)):
            continue
        before, after = state.shown.get(f"{device}.cur_state"), state.after(f"{device}.cur_state")
        if any(isinstance(level, int) and level > 0 for level in (before, after)):
            reason = f"throttled: {kind} was at level {before} before and {after} after the case"
            yield Finding("throttled", reason, refuses=before != after)


def _limited(state: State) -> Iterator[Finding]:
    for name, limit in state.shown.items():
        clock, _, what = name.rpartition(".")
        mhz = {"scaling_max_freq": 1e3, "max_freq": 1e6}.get(what)  # cpufreq says kHz, devfreq Hz
        known = state.shown.get(
            f"{clock}.cpuinfo_max_freq", state.shown.get(f"{clock}.available_frequencies")
        )
        most = max(map(int, re.findall(r"\d{1,15}", str(known))), default=0)
        if mhz and isinstance(limit, int) and limit < most:
            reason = f"clocked down: {clock} is limited to {limit / mhz:.0f} of {most / mhz:.0f} MHz"
            yield Finding("limited", reason, size=most / max(limit, 1))


def _narrow(state: State) -> Iterator[Finding]:
    for what, unit in (("speed", "GT/s"), ("width", "lanes")):
        now = least(state.shown, f"current_link_{what}")
        could = least(state.shown, f"max_link_{what}")
        if now and could and now < could:
            reason = f"the PCIe link runs with {now:g} of {could:g} {unit} that both its ends support"
            yield Finding("down-trained", reason, size=could / now)


def _offline(state: State) -> Iterator[Finding]:
    online, present = (cpus(state.shown.get(f"cpu.{name}")) for name in ("online", "present"))
    if 0 < online < present:
        yield Finding("offline", f"only {online} of {present} CPUs are online", size=present / online)


def cpus(listed: Value | None) -> int:
    """How many CPUs a list of the kernel's has ("0-3,6"); 0 for none."""
    spans = re.findall(r"(\d{1,4})(?:-(\d{1,4}))?", str(listed if listed is not None else ""))
    return sum(int(last or first) - int(first) + 1 for first, last in spans)


def _memory(state: State) -> Iterator[Finding]:
    amounts = (state.shown.get(f"memory_{name}kib") for name in ("", "available_", "dirty_", "writeback_"))
    whole, free, dirty, writing = (n if isinstance(n, int) else None for n in amounts)
    if state.shown.get("queue.read_ahead_kb") == 0:
        yield Finding("read-ahead", "the disk's read-ahead is off")
    if not whole:
        return
    if free is not None and free < _SCARCE * whole:
        yield Finding("memory", f"{free // 1024} of {whole // 1024} MiB of memory were free before the case")
    waiting = (dirty or 0) + (writing or 0)
    if waiting > max(_DIRTY * whole, _DIRTY_KIB):
        yield Finding("dirty", f"{waiting // 1024} MiB of earlier writes waited for the disk before the case")


def _cable(state: State) -> Iterator[Finding]:
    for end, whose in (("", "board"), ("tester.", "tester")):
        if _SHAPERS.fullmatch(shaper := str(state.shown.get(f"{end}tc", ""))):
            yield Finding("shaped", f"the {whose}'s port is limited: {shaper}")
        again, sent = (state.counted.get(f"{end}tcp_sent{name}", 0) for name in ("_again", ""))
        if again > _SENT_AGAIN * sent:
            reason = f"the {whose} sent {again} of {sent} TCP segments again: packets were lost or late"
            yield Finding("loss", reason)


def least(shown: Mapping[str, Value], what: str) -> float | None:
    """The smallest number of PCIe's both ends: a link has what the poorer one can do."""
    ends = [n for n in shown if n.startswith("pci.") and n.endswith(f".{what}")]
    return min((number for n in ends if (number := leading(shown[n]))), default=None)


def leading(value: Value | None) -> float | None:
    """The number that a value begins with: 8.0 of "8.0 GT/s PCIe"."""
    found = re.match(r"\d{1,15}(?:\.\d{1,9})?", str(value))
    return float(found[0]) if found else None


def _beside(state: State, ours: Collection[str]) -> Iterator[Finding]:
    for process, used_s in state.beside.items():
        share = used_s / state.seconds if state.seconds else 0.0
        name = process.rsplit(" (", 1)[0]
        if used_s >= _BESIDE_S and share > _BESIDE and name not in ours:
            yield Finding("beside", f"other load: {process} took {share:.0%} of a CPU")
