"""What is different between the states of one case in two runs, and may make its figures worse."""

import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial

from evmperf.measure.state.finding import Finding, cpus, leading
from evmperf.measure.state.rules import NO_LINK
from evmperf.model.run import Run
from evmperf.model.state import State, Value

Rank = Callable[[Value], tuple[float, ...]]

_TIMINGS = (0, 3, 2, 4, 1, 5, 7, 8, 9, 6, 10)
"""The kernel's MMC_TIMING_*, the slowest first."""


def _numbers(value: Value) -> tuple[float, ...]:
    """What it says in numbers; a line of a flash carries twice as much with D as with S."""
    pairs = re.findall(r"(\d{1,15}(?:\.\d{1,9})?)(D?)", str(value))
    return tuple(float(number) * (2 if double else 1) for number, double in pairs)


def _signed(value: Value) -> tuple[float, ...]:
    return tuple(map(float, re.findall(r"-?\d{1,9}", str(value))))


def _limits(value: Value) -> tuple[float, ...]:
    """Limits of I/O, the bytes and operations a second; no limit is the most."""
    return tuple(
        math.inf if text == "max" else float(text) for text in re.findall(r"=(max|\d{1,15})", str(value))
    )


def _timing(value: Value) -> tuple[float, ...]:
    number = leading(value)
    return (_TIMINGS.index(int(number)),) if number in _TIMINGS else ()


def _is(best: str, value: Value) -> tuple[float, ...]:
    return (str(value).startswith(best),)


_SETTINGS: dict[str, Rank | None] = {
    r"queue\.(?:read_ahead_kb|nr_requests|max_sectors_kb)|card\.cmdq_en|(?:tester\.)?tcp_[rw]mem": _numbers,
    r"mmc\.ios\.(?:clock|actual_clock|bus_width)|spi_nor\..*|ufs\.(?:gear|lane)": _numbers,
    r"usb\..*\.speed|pci\..*link_\w+|(?:tester\.)?net\.(?:speed|mtu)": _numbers,
    r"cpu\.\w+\.scaling_m\w+_freq|devfreq\..*\.m\w+_freq|idle\..*\.disable": _numbers,
    r"cpu\.online": lambda value: (cpus(value),),
    r"mmc\.ios\.timing_spec": _timing,
    r"(?:tester\.)?ethtool-k\.(?:[rt]x-checksumming|[\w-]+-offload)": partial(_is, "on"),
    r"(?:tester\.)?net\.duplex": partial(_is, "full"),
    r"(?:cpu\.\w+\.scaling_|devfreq\..*\.)governor": partial(_is, "performance"),
    r"queue\.write_cache": partial(_is, "write back"),
    r"ufs\.rate": partial(_is, "HS_RATE_B"),
    r"queue\.scheduler|disk\.(?:model|firmware_rev)|card\.(?:name|fwrev)|ufs\.mode": None,
    r"(?:tester\.)?ethtool-g\..*": _numbers,
    r"usb\.(?:.*\.)?interface|(?:tester\.)?(?:ethtool-[ca]\..*|tc)": None,
    r"cpu\.isolated|sched_rt_runtime_us|.*current_clocksource|(?:crypto|display|alsa)\..*": None,
    r"(?:tester\.)?sysctl\.(?!.*conntrack_count).*|mounted": None,
    r"bdi\..*|queue\.(?:iosched\..*|wbt_lat_usec|rq_affinity)": None,
    r"queue\.nomerges|(?:tester\.)?(?:route\..*|tc_part|net\.(?:queues|gro|napi|tx_q|thr).*)": None,
    r"transparent_hugepage\.enabled|irq\..*\.affinity|rng_current": None,
    r"(?:tester\.)?tc_filters": lambda value: tuple(-number for number in _numbers(value)),
    r"group\.(?:cpu\.weight|memory\..*)|shell\.policy": _numbers,
    r"group\.io\.max": _limits,
    r"shell\.(?:nice|TracerPid)": lambda value: tuple(-number for number in _signed(value)),
}
"""What somebody set or hardware agreed on, and the rank of its values: one of a higher rank than in the other
run makes no figure worse. None: either may be the worse one. Records of 0.1 have parts of offloads, too.
"""
_METRICS = {
    r"sysctl\.vm\.dirty.*|bdi\..*|queue\.(?:wbt_lat_usec|write_cache)": r"write_.*|.*latency.*|boot.*",
    r"queue\.read_ahead_kb": r"read_.*|boot.*",
}
"""The metrics that a setting concerns, where that is not all."""
_LIMITED = re.compile(r"group\..*|(?:tester\.)?tc_(?:filters|part)")
"""What is better absent."""
_WHOLE = re.compile(r"(?:shell|group\.cpu)\..*|cpu\..*|.*clocksource")
"""Settings of the whole machine."""
_WHILE_USED = re.compile(r"(?:crypto|display|alsa|irq|queue\.iosched)\..*|mounted")
"""What is there only while it is used, as an I/O scheduler's settings, and says nothing where it is not."""
_BOUNDS = re.compile(r".*(?:clock|speed|width|freq|lane|mem|max_sectors_kb)")
"""Settings whose ratio bounds what they cost: a rate, or what is under way at a time."""
_MORE = 1.15
"""How many times larger the bound of a cause is that both runs have, where it explains a part."""
_SLOWER = 3.0
"""How many times longer a disk's requests wait, which is no chance any more."""
_REQUESTS = 20
_OTHER = {"read": "write", "write": "read"}
_AB = "evmperf ab BOARD.yaml -k {benchmark} --b"
_HELPS = re.compile(r"quiet|mitigations=off|loglevel=[0-4]")
_HURTS = re.compile(r"nosmp|(?:max|nr_)cpus=.*|mem=.*|debug|initcall_debug|ignore_loglevel|earlycon.*")
"""Words for the kernel that make no figure worse, or none better."""


def between(ours: State, theirs: State, name: str) -> Iterator[Finding]:
    """What is set otherwise than in the state of the run `name`, where that may be worse."""
    for setting in sorted({*ours.shown, *theirs.shown}):
        kinds = [rank for pattern, rank in _SETTINGS.items() if re.fullmatch(pattern, setting)]
        here, other = (_of(state, setting) for state in (ours, theirs))
        if not kinds or here == other or {here, other} & NO_LINK:
            continue
        if _WHILE_USED.fullmatch(setting) and None in (here, other):
            continue
        if here is None and _LIMITED.fullmatch(setting):
            continue
        low, high = (kinds[0](v) if kinds[0] and v is not None else () for v in (here, other))
        if other is None and _LIMITED.fullmatch(setting):
            low = high
        if low != high and len(low) >= len(high) and all(map(operator.ge, low, high)):
            continue
        pairs = zip(low, high, strict=False) if _BOUNDS.fullmatch(setting) else ()
        size = max((most / least for least, most in pairs if 0 < least < most), default=0.0)
        now, then = ("absent" if value is None else value for value in (here, other))
        yield Finding(
            setting,
            f"{setting} is {now}, in {name} it was {then}",
            size=size,
            metrics=next((m for pattern, m in _METRICS.items() if re.fullmatch(pattern, setting)), ""),
            whole=bool(_WHOLE.fullmatch(setting)),
            proof=_proof(setting, other),
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


def _proof(setting: str, earlier: Value | None) -> str:
    """The command that sets it as it was; "" for what is not set by one."""
    named = re.fullmatch(r"(?:sysctl\.(?P<name>[\w./]+)|(?P<tcp>tcp_\w+))", setting)
    if not named or earlier is None or not re.fullmatch(r"[\w \t.-]{1,60}", str(earlier)):
        return ""
    name = (named["name"] or f"net.ipv4.{named['tcp']}").replace("/", ".")
    value = str(earlier).replace("\t", " ")
    return f"{_AB} 'run:sysctl -w {name}=\"{value}\"'"


def arguments(ours: Run, theirs: Run) -> Iterator[Finding]:
    """Words on the kernel's command line that only one of the runs has; what names a disk is no cause."""
    lines = (run.facts.command_line.split() for run in (ours, theirs))
    here, others = ({word for word in line if not word.startswith("root=")} for line in lines)
    for word in sorted(here ^ others if here and others else ()):
        mine = word in here
        if (_HELPS if mine else _HURTS).fullmatch(word):
            continue
        reason = f"the kernel's arguments have {'' if mine else 'no '}{word}, unlike {theirs.id}'s"
        proof = "" if mine or not re.fullmatch(r"[\w.,=-]{1,60}", word) else f"{_AB} args:{word}"
        yield Finding(f"argument {'+' if mine else '-'}{word}", reason, proof=proof, whole=True)


def slower(ours: State, theirs: State, name: str) -> Iterator[Finding]:
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


def _of(state: State, setting: str) -> Value | None:
    """A setting while the case ran, if one look saw it awake."""
    before, after = state.shown.get(setting), state.after(setting)
    return after if before is None or before in NO_LINK else before
