"""Published figures that others of the same guide, or their board's other releases, show to be wrong: they
are shown, and not judged. Each rule names the fault of TI's programs that it looks for
(docs/performance-guide.md, "Figures that are not judged").
"""

import functools
import itertools
import re
import statistics
from collections.abc import Iterator, Mapping

from evmperf.judge.published import record, scatter
from evmperf.judge.published.declared import AGAIN, tables
from evmperf.judge.published.scatter import History, Series
from evmperf.judge.singles import payload
from evmperf.measure.state import buses
from evmperf.model.figures import Figure, Key
from evmperf.model.units import Unit

Figures = Mapping[Key, Figure]
Doubt = tuple[Key, str]

_BITS_PER_SAMPLE = 32
"""Of 16-bit stereo."""
_OFF_RATE = 0.02
_MEMORY = ("rd", "wr", "rdwr", "cp", "fwr", "frd", "fcp", "bzero", "bcopy")
"""bw_mem's operations in the order in which TI's script runs them."""
_ENOUGH = 6
"""Equal bounds that are no coincidence."""
_DMIPS_PER_MHZ = 7.0
"""More than any core of these boards does (Cortex-A72: under 6)."""
_DHRYSTONES_PER_DMIPS = 1757.0
_LITTLE_MBIT = 1.0
_LOAD = 105.0
"""Percent; published loads are a little over 100 where a tool counted longer than it ran."""
_SUM_SLACK = 0.005
_BUSY = 50.0
"""Percent of load at which a link moves more than next to nothing."""
_RELEASES = 3
"""Other releases that make a history."""
_STEADY = 1.3
"""How far the others may be from their middle, as a factor, in at least this share of them:"""
_MOST_OF_THEM = 0.8
_WITHIN = 1.5
"""How far they may be from each other where they are not."""
_OFF = 2.5
"""A factor beyond which a figure is out of line."""
_POINT = 0.12
"""How near to 10 or 100 the factor of a lost decimal point is."""


def doubts(figures: Figures, board: str, others: History | None = None, release: str = "") -> dict[Key, str]:
    """Why published figures are not judged, by key: by figures of their run, all of which are needed, or by
    `others` of the board (`beside`) than those of its `release`.
    """
    reasons: dict[Key, str] = {}
    for key, why in itertools.chain.from_iterable(rule(figures) for rule in _RULES):
        reasons.setdefault(key, why)
    series, time = others or {}, record.same_time(release)
    for key, figure in figures.items():
        # What no bus carries: a cache was measured, or a digit is wrong.
        no_bus = buses.impossible(*key, unit=figure.unit, mean=figure.mean, board=board)
        if why := no_bus or out_of_line(figure.mean, figure.unit, series.get(key, {}), time):
            reasons.setdefault(key, why)
    order = [*dict.fromkeys(key.benchmark for key in figures)]
    published = [key for key in reasons if key in figures and figures[key].published]
    return {key: reasons[key] for key in sorted(published, key=lambda key: order.index(key.benchmark))}


@functools.cache
def beside(board: str, os: str) -> History:
    """What the record has of a board and does not doubt."""
    return scatter.of_entries(record.of_board(board, os), doubtful=False)


def out_of_line(mean: float, unit: str, series: Series, release: tuple[int, ...]) -> str:
    """How a figure is off its board's other releases; "" where it is not, or they tell nothing."""
    peers = [one for time, one in sorted(series.items()) if time != release and one[1] == unit]
    values = [value for _, _, value in peers]
    if len(values) < _RELEASES or (middle := statistics.median(values)) <= 0:
        return ""
    near = [name for name, _, value in peers if middle / _STEADY <= value <= middle * _STEADY]
    few = len(near) < max(_RELEASES, _MOST_OF_THEM * len(values))
    if few and not 0 < max(values) <= _WITHIN * min(values):
        return ""
    factor = mean / middle
    if 1 / _OFF <= factor <= _OFF:
        return ""
    names = list(dict.fromkeys(near))
    named = ", ".join(names) if len(names) <= _RELEASES else f"{names[0]} to {names[-1]}"
    others = f"{middle:g} {unit} in {named}"
    for lost in (10, 100, 1000):
        if factor > 0 and abs(max(factor, 1 / factor) / lost - 1) < _POINT:
            return f"a decimal point may be lost: {mean:g}, and {others}"
    return f"{mean:g}, and {others}"


def _printed_again(figures: Figures) -> Iterator[Doubt]:
    """A figure that stands twice with two values: one of them is wrong, and nobody knows which."""
    for key, figure in figures.items():
        first = key._replace(case=key.case.removesuffix(AGAIN))
        if key.case.endswith(AGAIN) and first in figures:
            why = f"printed twice: {figures[first].mean:g} and {figure.mean:g} {figure.unit}"
            yield from ((first, why), (key, why))


def _busy_for_nothing(figures: Figures) -> Iterator[Doubt]:
    """A link that moves nothing while the processor is busy with it."""
    for key, figure in figures.items():
        load = figures.get(key._replace(metric="cpu_load"))
        idle = key.metric == "throughput" and figure.mean < _LITTLE_MBIT
        if key.benchmark.startswith("eth_") and idle and load and load.mean > _BUSY:
            yield key, f"{figure.mean:g} {figure.unit} at {load.mean:g} % load"


def _implausible(figures: Figures) -> Iterator[Doubt]:
    """A figure that its benchmark would refuse to measure."""
    for key, figure in figures.items():
        table = tables().get(key.benchmark)
        metric = table.metric(key.case, key.metric) if table else None
        if metric is None:
            continue
        low, high = max(metric.low, 0.0), _LOAD if metric.unit == Unit.PERCENT else metric.high
        bounds = [value for value in (figure.low, figure.high) if value]  # 0.00 is a little, rounded off
        mean = [figure.mean] if figure.mean or low > 0 else []
        if wrong := [value for value in (*mean, *bounds) if not low <= value <= high]:
            yield key, f"{wrong[0]:g} {figure.unit} is not plausible ({low:g} to {high:g})"


def _audio(figures: Figures) -> Iterator[Doubt]:
    """A codec that cannot do a rate takes a neighbour's, and its bit rate says which."""
    for key, figure in figures.items():
        if key.benchmark.startswith("audio_") and key.metric == "throughput" and key.case.isdigit():
            rate = figure.mean / _BITS_PER_SAMPLE
            if abs(rate - int(key.case)) > _OFF_RATE * int(key.case):
                why = f"the codec ran at {rate:.0f} Hz, not at {key.case}"
                yield from ((key._replace(metric=metric), why) for metric in ("throughput", "cpu_load"))


def _two_operations(figures: Figures) -> Iterator[Doubt]:
    """TI's parser takes the operation that runs next for a second sample of 1 to 8 MB: mean and
    bounds are of two operations. Rows show it by sharing a bound with the next; over several runs
    not all of them do, and where the fault is in some it is in all.
    """
    rows, shared, following = [], 0, dict(itertools.pairwise(_MEMORY))
    for key, figure in figures.items():
        match = re.fullmatch(r"bw_mem-(\w+)-([1248]mb)", key.case)
        if match and match[1] in following and figure.low is not None:
            rows.append(key)
            other = figures.get(key._replace(case=f"bw_mem-{following[match[1]]}-{match[2]}"))
            shared += bool(other and {figure.low, figure.high} & {other.low, other.high, other.mean})
    if shared >= _ENOUGH:
        yield from ((key, "mean of two operations, its own and the next") for key in rows)


def _spoilt_latencies(figures: Figures) -> Iterator[Doubt]:
    """A second, empty reading of 0.00 halves a mean; two decimals leave nothing of another."""
    for key, figure in figures.items():
        if key.case == "latency_for_1.00_mb_block_size" and figure.low == 0:
            yield key, "half of the true value, its minimum is an empty reading"
        if key.case == "lat_proc-proccall" and figure.mean < 0.1:
            yield key, "rounded to one or two hundredths"


def _clock(figures: Figures) -> Iterator[Doubt]:
    """A clock that the Dhrystones rule out: DMIPS per MHz beyond what any core does."""
    cases = ("dhrystone_per_second", "cpu_clock", "dhrystone_per_mhz")
    rate, clock, per_mhz = (Key("dhrystone", case, "perf") for case in cases)
    mhz = figures[clock].mean if {rate, clock} <= figures.keys() else 0.0
    if mhz and figures[rate].mean / _DHRYSTONES_PER_DMIPS / mhz > _DMIPS_PER_MHZ:
        why = f"no core does that at {mhz:g} MHz: the clock is wrong"
        yield from ((key, why) for key in (clock, per_mhz))


def _failed_ipsec(figures: Figures) -> Iterator[Doubt]:
    """A run that moved nothing, published with its zeros."""
    for key in (key for key in figures if key.benchmark.startswith("ipsec_")):
        moved, packets = (figures.get(key._replace(metric=name)) for name in ("throughput", "kpps"))
        if (moved and moved.mean < _LITTLE_MBIT) or (packets and packets.mean == 0):
            yield key, "a failed run, published"


def _payloads(figures: Figures) -> Iterator[Doubt]:
    """Throughput is packets times payload; other rows mix two payloads, or have lost packets."""
    for key in figures:
        if "_udp_" in key.benchmark and key.metric == "throughput" and payload(figures, key) == 0:
            for metric in ("throughput", "kpps"):
                yield key._replace(metric=metric), "throughput is not packets times one payload"


def _total(figures: Figures) -> Iterator[Doubt]:
    """A total that is not the sum of the rails above it."""
    for table in {key.benchmark for key in figures if key.benchmark.startswith("lpm_power_")}:
        powers = {key: f.mean for key, f in figures.items() if key[::2] == (table, "power")}
        total = powers.pop(key := Key(table, "Total", "power"), None)
        slack = _SUM_SLACK * len(powers) + 1e-9
        if total is not None and len(powers) > 1 and abs(total - sum(powers.values())) > slack:
            yield key, f"not the sum of its rails, {sum(powers.values()):.2f}"


_RULES = (
    _audio,
    _two_operations,
    _spoilt_latencies,
    _clock,
    _failed_ipsec,
    _payloads,
    _total,
    _busy_for_nothing,
    _printed_again,
    _implausible,
)
"""What looks for a fault in a run; of a figure the first counts."""
