"""What two runs of one case say beside each other: arguments, disks, ports, the speed of the machine."""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from evmperf.measure.state.finding import Finding
from evmperf.measure.state.machine import COMMAND
from evmperf.measure.state.machine import host as busy_host
from evmperf.model.run import Run
from evmperf.model.state import State
from evmperf.model.units import MEBIBYTE

_MORE = 1.15
"""How many times larger the bound of a cause is that both runs have, where it explains a part."""
_SLOWER = 3.0
"""How many times longer a disk's requests wait, which is no chance any more."""
_SLOWER_MACHINE = 1.5
"""How many times longer a look takes on a machine that is slower."""
_RESOLVED_MS = 50
"""The difference between two looks of healthy runs: 40 ms were seen, 20 of them the grain of /proc/uptime."""
_PACKETS = 1500.0
"""Packets a second on a port that a case does not use."""
_REQUESTS = 20
_OTHER = {"read": "write", "write": "read"}
_HELPS = re.compile(r"quiet|mitigations=off|loglevel=[0-4]")
_HURTS = re.compile(r"nosmp|(?:max|nr_)cpus=.*|mem=.*|debug|initcall_debug|ignore_loglevel|earlycon.*")
"""Words for the kernel that make no figure worse, or none better."""
_TICKS = 100
"""Of the kernel's USER_HZ in a second."""
_SECTOR = 512
_NEAR = 0.05
"""By how much the counters of one disk may differ that are read one after the other."""
_WHOLE_COMMAND = 390
"""Characters from which on a process's command may have been cut."""
_LEAST_MIB = 32.0
_LEAST_RATE = 5.0
"""MiB a second of other disks below which nothing is said."""


def arguments(ours: Run, theirs: Run) -> Iterator[Finding]:
    """Words on the kernel's command line that only one of the runs has; what names a disk is no cause."""
    lines = (run.facts.command_line.split() for run in (ours, theirs))
    here, others = ({word for word in line if not word.startswith("root=")} for line in lines)
    for word in sorted(here ^ others if here and others else ()):
        mine = word in here
        if (_HELPS if mine else _HURTS).fullmatch(word):
            continue
        plain = re.fullmatch(r"[\w.,=-]{1,60}", word)
        words = ("as-is", f"args:{word}")
        yield Finding(
            f"argument {'+' if mine else '-'}{word}",
            f"set otherwise: the kernel's arguments have {'' if mine else 'no '}{word}, unlike {theirs.id}'s",
            proof=f"evmperf ab BOARD.yaml -k {{benchmark}} --b args:{word}" if plain and not mine else "",
            whole=True,
            otherwise=True,
            back=() if not plain else words[::-1] if mine else words,
        )


def beyond(ours: Iterable[Finding], theirs: Iterable[Finding]) -> list[Finding]:
    """Findings of one state that the other one has not, or has to a lesser extent: the ratio is its size."""
    sizes: dict[str, float] = {}
    for one in theirs:
        sizes[_what(one)] = max(one.size, sizes.get(_what(one), 0.0))
    differing = []
    for one in ours:
        size = sizes.get(_what(one))
        if size is None:
            differing.append(one)
        elif size and one.size > _MORE * size:
            differing.append(replace(one, size=one.size / size))
    return differing


def _what(finding: Finding) -> str:
    """What a finding is about, without its numbers."""
    return re.sub(r"\d+", "", finding.reason)


def stopped(findings: Iterable[Finding], ours: State, theirs: State) -> Iterator[Finding]:
    """Findings, and of a process beside the case what starts as many as there were, and what stops them."""
    here, there = (
        Counter(str(text) for n, text in {**state.shown, **state.changed}.items() if n.startswith(COMMAND))
        for state in (ours, theirs)
    )
    for one in findings:
        text, number = str(ours.after(one.fact)), one.fact.removeprefix(COMMAND)
        if number == one.fact:
            yield one
        elif text in here and text not in there and number != "1" and len(text) < _WHOLE_COMMAND:
            yield replace(one, fact=f"process {text}", back=_process(text, here[text]))
        else:
            yield replace(one, fact=f"process {number}")


def _process(text: str, count: int) -> tuple[str, ...]:
    """The words of a variation with which a command runs so often, and with which it stands still."""
    try:
        words = shlex.split(text)
    except ValueError:
        return ()
    shown = shlex.quote(" ".join(words) + " ")
    find = (
        f"p() {{ for f in /proc/[0-9]*; do [ \"$(tr '\\000\\n' '  ' <$f/cmdline)\" != {shown} ] || "
        f"echo ${{f#/proc/}}; done 2>/dev/null; }}"
    )
    start = f"(setsid {shlex.join(words)} </dev/null >/dev/null 2>&1 &)"
    return (
        f"run:{find}; n=$(p | wc -l); while [ $n -lt {count} ]; do {start}; n=$((n + 1)); done",
        f"run:{find}; for i in $(p); do kill -s STOP -- -$i 2>/dev/null || kill -s STOP $i; done",
    )


def disk(ours: State, theirs: State, name: str) -> Iterator[Finding]:
    """A disk that needs longer for its requests than in the run `name`."""
    for way in ("read", "write"):
        counts, waits = (
            [state.counted.get(f"disk.{way}_{what}", 0) for state in (ours, theirs)]
            for what in ("count", "ms")
        )
        here, other_ms = (ms / max(count, 1) for ms, count in zip(waits, counts, strict=True))
        if min(counts) >= _REQUESTS and here > _SLOWER * other_ms > 0:
            reason = f"the disk needed {here:.3g} ms for a {way} request, in {name} {other_ms:.3g} ms"
            yield Finding("device", reason, size=here / other_ms, metrics=f"(?!{_OTHER[way]}_).*")


def is_half(one: Finding, times: float) -> bool:
    """Whether a finding's bound is half of so many `times`, as factors."""
    return one.size**2 > times


def machine(ours: State, theirs: State, name: str, control: float) -> Iterator[Finding]:
    """That the whole machine was slower than in the run `name`, by the same work before and after both cases:
    the looks, and the control loop of both sessions (`control`: how many times longer it took here).
    """
    spans = [min(_took_ms(state), default=0.0) for state in (ours, theirs)]
    # A look that lists thousands of filters takes long for that.
    alike = all(ours.shown.get(n) == theirs.shown.get(n) for n in ("tc_filters", "tester.tc_filters"))
    look = spans[0] / spans[1] if alike and all(spans) else 0.0
    if look and spans[0] - spans[1] <= _RESOLVED_MS:
        look = 1.0
    # The loop was measured at the begin of a session, the looks around the case.
    times = look or control
    if times > _SLOWER_MACHINE:
        what = f"evmperf's own reading took {spans[0]:.0f} ms, in {name} {spans[1]:.0f} ms"
        if not look:
            what = f"evmperf's control loop took {control:.1f} times as long as in {name}"
        # A busy host of both runs is no difference, and tells why where its waiting is half of what was lost.
        busy = next((one for one in busy_host(ours) if is_half(one, times)), None)
        rule, why = (busy.rule, f"; {busy.reason}") if busy else ("machine", "")
        yield Finding(
            rule, f"the whole machine was slower: {what}{why}", size=times, whole=True, symptom=not busy
        )


def _took_ms(state: State) -> list[float]:
    both = (state.shown.get("look_ms"), state.after("look_ms"))
    return [float(value) for value in both if isinstance(value, int) and value > 0]


def ports(ours: State, theirs: State | None) -> Iterator[Finding]:
    """Packets on a port that a case does not use: the one with the most, in the other run if there is one, is
    the case's.
    """
    rates, before = _packets(ours), _packets(theirs) if theirs else {}
    usual = before or rates
    used = max(usual, key=lambda port: usual[port], default="") if "net.mtu" in ours.shown else ""
    for port, rate in rates.items():
        if port != used and rate > max(_PACKETS, 3 * before.get(port, 0.0)):
            yield Finding(
                "packets", f"{port} carried {rate:.0f} packets a second beside the case", whole=True
            )


def _packets(state: State) -> Mapping[str, float]:
    """Packets received a second, by port."""
    counts = {n: c for n, c in state.counted.items() if re.fullmatch(r"port\..*\.rx", n)}
    return {n[5:-3]: c / state.seconds for n, c in counts.items()} if state.seconds else {}


def other_disks(state: State) -> Iterator[Finding]:
    """What other disks than the case's carried beside it, as a mirror that is put in step does, and what the
    kernel's threads worked meanwhile.
    """
    mine = {state.counted.get(f"disk.{way}_sectors", 0) for way in ("read", "write")} - {0}
    mib: dict[str, float] = {}
    for name, sectors in state.counted.items():
        found = re.fullmatch(r"disks\.(\w+)\.(?:read|write)_sectors", name)
        if found and not any(abs(sectors - own) <= _NEAR * own for own in mine):
            mib[found[1]] = mib.get(found[1], 0.0) + sectors * _SECTOR / MEBIBYTE
    busy = {disk: amount for disk, amount in mib.items() if amount > _LEAST_MIB}
    if state.seconds and sum(busy.values()) > _LEAST_RATE * state.seconds:
        listed = ", ".join(f"{disk} {amount:.0f} MiB" for disk, amount in busy.items())
        ticks = state.counted.get("shell.thread_ticks", 0) / _TICKS
        threads = f", and threads of the kernel worked for {ticks:.1f} s" if ticks > 1 else ""
        yield Finding(
            "other disk", f"other disks were at work beside the case: {listed}{threads}", whole=True
        )
