"""What spoils a figure: rules over the state around a case, each with its reason.

What changed during the case refuses its figures; what held before and after marks them.
"""

import re
from collections.abc import Collection, Iterator, Mapping

from evmperf.measure.state import machine
from evmperf.measure.state.finding import Finding, leading
from evmperf.model.state import State, Value
from evmperf.model.units import counted

CLOCK = 0.01
"""By how much of itself a board's clock may differ from the lab's."""
_LIVE = re.compile(
    r"pci\..*\.current_link_\w+|usb\..*\.speed|net\.(?:speed|duplex)"
    r"|mmc\.ios\.(?:timing_spec|bus_width)|cpu\.\w+\.scaling_(?:max_freq|governor)"
)
"""Modes that must stay during a case. UFS shifts gears by itself, idle cards lose their clock."""
NO_LINK: frozenset[Value] = frozenset((-1, "unknown", "Unknown", "0 Hz"))
"""What an idle port or card says."""
_ERRORS = re.compile(r"mmc\.err_stats\..*|pci\..*\.aer_.*|net\.[rt]x_crc_errors|ethtool-S\..*(?i:crc).*")
"""Counters of a bad signal. A port's rx_errors count frames that it had no room for, too."""
_STEPPED_S = 2
"""Seconds by which a wall clock that both looks read in whole seconds was set."""
_UNLIMITED = (
    "evmperf ab BOARD.yaml -k {benchmark} --b 'run:for p in /sys/devices/system/cpu/cpufreq/policy*; do "
    "cat $p/cpuinfo_max_freq >$p/scaling_max_freq; done'"
)
_COOLING = re.compile(r"cooling_device\d+")
_DIRTY = 0.05
"""Part of the memory that waits for a disk when a case begins; and at least `_DIRTY_KIB`."""
_DIRTY_KIB = 32 * 1024
_SCARCE = 0.1
"""Part of the memory below which a case has too little of it."""
_SENT_AGAIN = 0.001
"""Part of TCP's segments that is sent twice on a cable that loses some."""
_FEW, _PRICE = 0.01, 50.0
"""Part of the segments below which the loss costs so many times its part at most."""
_LEAST_AGAIN = 10
"""Segments below which nothing is said: one is sent twice on any cable."""
_SHAPERS = re.compile(r"qdisc (?:netem|tbf|cake|htb|hfsc) .*")


def judge(state: State, ours: Collection[str] = ()) -> list[Finding]:
    """What spoiled a case; `ours` are the programs that belong to it."""
    rules = (_changed, _stepped, _link_lost, _errors, _throttled, _limited, _narrow, _memory, _cable)
    findings = [finding for rule in rules for finding in rule(state)]
    return [*clock(state.clock), *findings, *machine.judge(state, ours)]


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


def _stepped(state: State) -> Iterator[Finding]:
    """A wall clock that was set during the case, by which many programs time."""
    before, after = (value for value in (state.shown.get("wall_s"), state.after("wall_s")))
    if isinstance(before, int) and isinstance(after, int) and abs(after - before) >= _STEPPED_S:
        reason = (
            f"the board's wall clock was set by {after - before:+d} s during the case (a first NTP "
            f"synchronisation?): what programs time by it is wrong"
        )
        yield Finding("stepped", reason, refuses=True)


def _link_lost(state: State) -> Iterator[Finding]:
    if lost := state.counted.get("net.carrier_down_count"):
        reason = f"the port lost its link {counted(lost, 'time')} during the case: check cable and switch"
        yield Finding("link lost", reason, refuses=True)


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
        frequencies = state.shown.get(
            f"{clock}.cpuinfo_max_freq", state.shown.get(f"{clock}.available_frequencies")
        )
        most = max(map(int, re.findall(r"\d{1,15}", str(frequencies))), default=0)
        if mhz and isinstance(limit, int) and limit < most:
            reason = f"clocked down: {clock} is limited to {limit / mhz:.0f} of {most / mhz:.0f} MHz"
            whole = what.startswith("scaling")
            size, proof = most / max(limit, 1), _UNLIMITED * whole
            yield Finding("limited", reason, size=size, whole=whole, proof=proof, fact=name)


def _narrow(state: State) -> Iterator[Finding]:
    for what, unit in (("speed", "GT/s"), ("width", "lanes")):
        now = least(state.shown, f"current_link_{what}")
        could = least(state.shown, f"max_link_{what}")
        if now and could and now < could:
            reason = f"the PCIe link runs with {now:g} of {could:g} {unit} that both its ends support"
            yield Finding("down-trained", reason, size=could / now)


def _memory(state: State) -> Iterator[Finding]:
    amounts = (state.shown.get(f"memory_{name}kib") for name in ("", "available_", "dirty_", "writeback_"))
    whole, free, dirty, writing = (n if isinstance(n, int) else None for n in amounts)
    if state.shown.get("queue.read_ahead_kb") == 0:
        touched = "read_.*|latency.*"
        yield Finding(
            "read-ahead", "the disk's read-ahead is off", metrics=touched, fact="queue.read_ahead_kb"
        )
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
            yield Finding("shaped", f"the {whose}'s port is limited: {shaper}", fact=f"{end}tc")
        again, sent = (state.counted.get(f"{end}tcp_sent{name}", 0) for name in ("_again", ""))
        if again >= _LEAST_AGAIN and again > _SENT_AGAIN * sent:
            reason = f"the {whose} sent {again} of {sent} TCP segments again: packets were lost or late"
            # Each costs a retransmission timeout at most, 1 s (RFC 6298, 2.4); few of many are repaired
            # by the next acknowledgements, before any timeout (RFC 5681, 3.2).
            left_s = (state.seconds or 0.0) - again
            size = state.seconds / left_s if state.seconds and left_s > 0 else 0.0
            few = 1 + _PRICE * again / max(sent, 1) if again < _FEW * sent else 0.0
            yield Finding("loss", reason, size=min(filter(None, (size, few)), default=0.0))


def least(shown: Mapping[str, Value], what: str) -> float | None:
    """The smallest number of PCIe's both ends: a link has what the poorer one can do."""
    ends = [n for n in shown if n.startswith("pci.") and n.endswith(f".{what}")]
    return min((number for n in ends if (number := leading(shown[n]))), default=None)
