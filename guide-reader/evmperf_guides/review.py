"""What a reviewer asks before a guide is published: its figures held against earlier releases, against each
other, and against what the hardware can do. A remark says its evidence and asks; it never says "wrong".
"""

import itertools
import math
import re
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from evmperf.judge.published import declared, identity, record, scatter, source
from evmperf.judge.published.scatter import History
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.results import Direction
from evmperf.model.stats import figure_text, rounded
from evmperf.model.units import counted
from evmperf_guides import artefacts, moves
from evmperf_guides.importer import ImportedGuide

MOST = 12
"""Questions that are shown; the rest is folded."""
ODDS = 0.015
"""A move or a range that so few releases of its metric had is asked about."""
ODDS_OF_TABLES = 0.03
"""The same of a table that moved as a whole."""
LEAST = 0.10
"""No smaller relative move is asked about."""
_WIDE = 0.5
"""No smaller range, relative to its mean, is asked about."""
_VERY_WIDE = 0.75
"""A range of a figure that should be high that is always asked about."""
_COPIED = 3
"""Figures of a table, the same as in the last release, that are no coincidence."""
_MOVED = 0.5
"""Share of all figures that must not be those of the last release: else nothing was measured."""
_RARE = 1e-4
"""Odds of what is no matter of chance: copies, exchanged rows, what no hardware does."""
_APART = 1.2
"""Factor between two rows that are exchanged."""
_TWICE = 2
_ALIKE = 0.05
"""Logarithm of the factor of figures that are alike."""
_CLOCK = re.compile(r"(?im)^\|\s*([^|]+?)\s*\|[^|]*ARM running at ([\d.]+) ?([GM])Hz")
_KINDS = {
    "jump": "is it expected?",
    "elsewhere": "which is right?",
    "exchanged": "are the rows exchanged?",
    "noise": "measure it again?",
    "copied": "was it measured for this release?",
    "evidence": "please check",
    "order": "please check both rows",
    "missing": "was it left out on purpose?",
    "form": "please repair it",
}
"""What each kind of remark asks."""


@dataclass(frozen=True)
class Remark:
    """One row or table, what it is held against, and the question; `odds` are how improbable it is."""

    kind: str
    board: str
    table: str
    row: str
    column: str
    figure: str
    against: str
    line: int
    odds: float
    folded: bool = False
    more: int = 0
    """Remarks of the kind in the table that are folded behind it."""

    @property
    def key(self) -> Key:
        """The figure that it is about."""
        return Key(self.table, self.row, self.column)

    @property
    def question(self) -> str:
        """What it asks."""
        return _KINDS[self.kind]

    def __str__(self) -> str:
        where = " ".join(filter(None, (self.board, self.table, self.row, self.column)))
        more = f" (and {self.more} more of the kind)" if self.more else ""
        return f"{where}: {self.figure}, {self.against}: {self.question}{more}"


@dataclass
class Side:
    """One board of the guide, and what is known of it before: its history, the last release, its doubts."""

    board: str
    figures: Mapping[Key, Figure]
    history: History
    doubted: frozenset[Key] = frozenset()
    last: tuple[int, ...] = ()
    name: str = ""
    relative: str = ""
    """The board whose history it is, where the board has none."""

    def before(self, key: Key, unit: str) -> list[float]:
        """Earlier figures of a key, oldest first."""
        series = self.history.get(key, {})
        return [mean for _, (_, same, mean) in sorted(series.items()) if same == unit]

    def remark(self, kind: str, key: Key, against: str, odds: float) -> Remark:
        """A remark on one figure."""
        figure = self.figures[key]
        text = f"{figure_text(figure.mean, figure.low, figure.high)} {figure.unit}".strip()
        (line,) = (cell.line for cell in figure.result.published if cell.metric == key.metric)
        return Remark(kind, self.board, *key, text, against, line, odds)


@dataclass(frozen=True)
class GuideReview:
    """A guide, its boards with what is known of them, and the remarks, the most improbable first."""

    guide: ImportedGuide
    sides: Sequence[Side]
    remarks: Sequence[Remark]

    @property
    def shown(self) -> list[Remark]:
        """The questions."""
        return [one for one in self.remarks if not one.folded]


def review(
    imported: ImportedGuide, text: str, olds: Sequence[ImportedGuide] = (), before: str = "", until: str = ""
) -> GuideReview:
    """Review a guide, held against older guides or else the record's earlier releases, of a board without
    those against its nearest relative's. The record's habits may be limited to what was published `before` a
    date, its other guides of the release to those `until` one (YYYY-MM-DD). Raises UsageError for guides of
    other boards, or that are not older.
    """
    mine = {identity.board(board) for board in imported.results}
    for old in olds:
        if not mine & {identity.board(board) for board in old.results}:
            names = f"{', '.join(old.results) or 'no board'}, not {', '.join(imported.results)}"
            raise UsageError(f"{old.file}: is of {names}: name an older guide of the same board")
        if record.same_time(old.release) >= record.same_time(imported.release):
            releases = f"{old.release}, not older than {imported.release}"
            raise UsageError(f"{old.file}: is of release {releases}: name the new guide first")
    habits = moves.known(before)
    found, sides = list(_form(imported, text)), [_side(imported, board, olds) for board in imported.results]
    for side in sides:
        told: set[Key] = set()
        # What one look explains is not asked about again.
        looks = (_evidence(side, text), _elsewhere(side, imported, until), _exchanged(side))
        for look in (*looks, _tables(side, habits), _jumps(side, habits), _noise(side, habits)):
            fresh = [one for one in look if one.key not in told]
            told |= {one.key for one in fresh}
            found += fresh
        found += [] if side.relative else [*_copied(side), *_order(side), *_missing(side, imported)]
    return GuideReview(imported, sides, ordered(found))


def ordered(found: Iterable[Remark]) -> list[Remark]:
    """Remarks by table and kind, the most improbable table first; behind the first of each the rest is
    folded, as are tables beyond those that are shown.
    """
    groups: dict[tuple[str, str], list[Remark]] = {}
    for one in found:
        groups.setdefault((one.kind, "" if one.kind == "missing" else one.table), []).append(one)
    ranked = sorted(groups.values(), key=lambda group: (min(one.odds for one in group), -len(group)))
    remarks = []
    for place, group in enumerate(ranked):
        first, *others = sorted(group, key=lambda one: one.odds)
        remarks.append(replace(first, folded=place >= MOST, more=len(others)))
        remarks += [replace(one, folded=True) for one in others]
    return remarks


def _side(imported: ImportedGuide, board: str, olds: Sequence[ImportedGuide]) -> Side:
    """What is known of a board before the guide's release, or else of its nearest relative."""
    own, name = record.same_time(imported.release), identity.board(board)
    mine = figures(imported.results[board])
    if olds:
        of_olds = ((old.release, *one) for old in olds for one in old.results.items())
        known = [(release, of) for release, other, of in of_olds if identity.same(other, board)]
    else:
        entries = (e for e in record.of_board(name, imported.os) if record.same_time(e.release) < own)
        known = [(entry.release, source.results([entry], samples=False)) for entry in entries]
    history: dict[Key, dict[tuple[int, ...], tuple[str, str, float]]] = {}
    doubted: set[Key] = set()
    names = {record.same_time(release): release for release, _ in known}
    last = max(names, default=())
    for release, results in known:
        time = record.same_time(release)
        for key, figure in figures(results).items():
            history.setdefault(key, {})[time] = (release, figure.unit, figure.mean)
            if figure.doubt and time == last:
                doubted.add(key)
    if not names and not olds and (found := _relative(name, mine, imported)):
        return Side(board, mine, found[1], relative=found[0])
    return Side(board, mine, history, frozenset(doubted), last, names.get(last, ""))


def _relative(board: str, mine: Mapping[Key, Figure], imported: ImportedGuide) -> tuple[str, History] | None:
    """The other board of the record with most figures like these, and its history until this release."""
    own, found = record.same_time(imported.release), []
    for name, entries in record.boards(record.entries()).items():
        known = (e for e in entries if e.os == imported.os and record.same_time(e.release) <= own)
        history = scatter.of_entries(sorted(known, key=lambda entry: entry.place), doubtful=False)
        ratios = [
            mine[key].mean / last
            for key, series in history.items()
            if key in mine and (last := series[max(series)][2]) > 0
        ]
        alike = sum(1 / (1 + LEAST) <= ratio <= 1 + LEAST for ratio in ratios)
        if name != board and alike > max(len(ratios) / 2, len(mine) / 2):
            found.append((alike, name, history))
    return max(found, key=lambda one: one[0])[1:] if found else None


def _elsewhere(side: Side, imported: ImportedGuide, until: str) -> Iterator[Remark]:
    """Figures that another guide of the release, the same in most, has otherwise: one of them is repaired."""
    own = record.same_time(imported.release)
    for entry in record.of_board(identity.board(side.board), imported.os):
        if record.same_time(entry.release) != own or (until and entry.date >= until):
            continue
        cells = {Key(case.benchmark, case.name, v.metric): v for case, v in record.values(entry)}
        both = [key for key, f in side.figures.items() if key in cells and cells[key].unit == f.unit]
        other = [key for key in both if cells[key].mean != side.figures[key].mean]
        if len(other) * 2 < len(both):
            against = f"in {entry.guide or 'another guide of the release'}"
            for key in other:
                yield side.remark("elsewhere", key, f"{cells[key].mean:g} {against}", _RARE)


def _jumps(side: Side, habits: moves.Habits) -> Iterator[Remark]:
    """Figures that moved further than this metric does from release to release."""
    for key, figure in side.figures.items():
        earlier, whose = side.before(key, figure.unit), f"of {side.relative}" if side.relative else "before"
        if not earlier or key in side.doubted:
            continue
        if figure.mean <= 0 or min(earlier[-3:]) <= 0:
            if figure.mean == 0 and min(earlier) > 0:
                yield side.remark("jump", key, f"{_shown(earlier)} {whose}", ODDS / 2)
            continue
        nearest = min((figure.mean / one for one in earlier[-3:]), key=lambda ratio: abs(math.log(ratio)))
        least = _TWICE if side.relative else 1 + LEAST
        if abs(math.log(nearest)) < math.log(least) or min(earlier) <= figure.mean <= max(earlier):
            continue
        odds, count = habits.odds("move", key, figure.unit, abs(math.log(nearest)))
        if odds <= ODDS:
            known = f"{_shown(earlier)} {whose}; {odds:.1%} of {count} moves between releases are as large"
            yield side.remark("jump", key, known, odds)


def _columns(side: Side) -> Mapping[tuple[str, str], list[tuple[Key, float, float]]]:
    """The last release's figures and these, by table and metric, where both are above zero."""
    columns: dict[tuple[str, str], list[tuple[Key, float, float]]] = {}
    for key, figure in side.figures.items() if not side.relative else ():
        if figure.mean > 0 and (earlier := side.before(key, figure.unit)) and earlier[-1] > 0:
            columns.setdefault((key.benchmark, key.metric), []).append((key, earlier[-1], figure.mean))
    return columns


def _tables(side: Side, habits: moves.Habits) -> Iterator[Remark]:
    """Tables of which most rows moved one way, further than this table does from release to release."""
    for (_, metric), column in _columns(side).items():
        moved = [(key, math.log(new / old)) for key, old, new in column]
        middle = statistics.median(ratio for _, ratio in moved)
        if len(moved) < moves.ROWS or abs(middle) < math.log1p(LEAST):
            continue
        odds, count = habits.odds("table", moved[0][0], metric, abs(middle))
        for key, ratio in moved:
            if odds <= ODDS_OF_TABLES and ratio * middle > 0 and abs(ratio) >= math.log1p(LEAST):
                known = f"{_shown(side.before(key, side.figures[key].unit))} before; the table moved by"
                known += f" {math.expm1(middle):+.0%}, as {odds:.1%} of {count} such tables did"
                yield side.remark("jump", key, known, odds)


def _shown(values: Sequence[float]) -> str:
    return ", ".join(rounded(value) for value in values[-3:])


def _exchanged(side: Side) -> Iterator[Remark]:
    """Two rows of a table that each have the other's figure of the last release."""
    for column in _columns(side).values():
        for (one, old, new), (other, other_old, other_new) in itertools.combinations(column, 2):
            apart = max(old, other_old) / min(old, other_old) > _APART
            if apart and max(abs(math.log(new / other_old)), abs(math.log(other_new / old))) < _ALIKE:
                yield side.remark("exchanged", one, f"{old:g} before, as {other.case} is now", _RARE)
                yield side.remark("exchanged", other, f"{other_old:g} before, as {one.case} is now", _RARE)


def _noise(side: Side, habits: moves.Habits) -> Iterator[Remark]:
    """Ranges that say: measure it again."""
    for key, figure in side.figures.items():
        if figure.low is None or figure.high is None or figure.mean <= 0:
            continue
        width = (figure.high - figure.low) / figure.mean
        if width < _WIDE or key in side.doubted:
            continue
        odds, count = habits.odds("range", key, figure.unit, width)
        if width >= _VERY_WIDE and _should_be_high(key):
            odds = min(odds, ODDS / 2 / width)
        if odds <= ODDS:
            known = f"a range of {width:.0%}; {odds:.1%} of {count} are as wide"
            yield side.remark("noise", key, known, odds)


def _copied(side: Side) -> Iterator[Remark]:
    """Tables with the figures of the last release to the digit, beside others that moved."""
    same: dict[str, dict[Key, bool]] = {}
    for key, figure in side.figures.items():
        table, then = declared.tables().get(key.benchmark), side.history.get(key, {}).get(side.last)
        # Some programs print few different values.
        is_quantised = table and key.case in {*table.quotients, "cpu_clock", "dhrystone_per_mhz"}
        differs = figure.mean % 1 or len(set(side.before(key, figure.unit))) > 1
        if then and then[1] == figure.unit and differs and not is_quantised:
            same.setdefault(key.benchmark, {})[key] = then[2] == figure.mean
    whole = [one for of_table in same.values() for one in of_table.values()]
    if not whole or sum(whole) > _MOVED * len(whole):
        return
    for of_table in same.values():
        if all(of_table.values()) and len(of_table) >= _COPIED:
            against = f"all {len(of_table)} figures are those of {side.name}"
            yield from (side.remark("copied", key, against, _RARE / len(of_table)) for key in of_table)


def _evidence(side: Side, text: str) -> Iterator[Remark]:
    """What the guide's own figures, the list of modules or the hardware's limits contradict, unless the last
    release had it as well.
    """
    reasons = artefacts.doubts(side.figures, side.board)
    for module, number, unit in _CLOCK.findall(text):
        mhz = float(number) * (1000 if unit in "Gg" else 1)
        key = Key("dhrystone", "cpu_clock", "perf")
        mine = identity.same(identity.of_module(module) or "-", side.board) and key in side.figures
        if mine and abs(side.figures[key].mean / mhz - 1) > _ALIKE:
            reasons.setdefault(key, f"the list of modules says {mhz:g} MHz")
    for key, figure in side.figures.items():
        if figure.mean == 0 and _should_be_high(key):
            reasons[key] = "nothing was moved"
    for key, why in reasons.items():
        if key not in side.doubted or not side.figures[key].mean:
            yield side.remark("evidence", key, why, _RARE)


def _order(side: Side) -> Iterator[Remark]:
    """A smaller buffer that is more than twice as fast, and rows where it was not so before."""
    columns: dict[tuple[str, str], list[Key]] = {}
    for key, figure in side.figures.items():
        is_of_buffer = key.case.isdigit() and "throughput" in key.metric and "audio" not in key.benchmark
        if is_of_buffer and figure.mean > 0:
            columns.setdefault((key.benchmark, key.metric), []).append(key)
    for keys in columns.values():
        for small, large in itertools.pairwise(sorted(keys, key=lambda key: int(key.case))):
            times = side.figures[small].mean / side.figures[large].mean
            old = [side.before(key, side.figures[key].unit)[-1:] for key in (small, large)]
            was = old[0][0] / old[1][0] if all(old) and old[1][0] else 0.0
            if (times > _TWICE and was < _TWICE / _APART) or (times > 1 and 0 < was < 1 / _TWICE):
                yield side.remark("order", large, f"{times:.1f} times as much with {small.case}", ODDS / 4)


def _missing(side: Side, imported: ImportedGuide) -> Iterator[Remark]:
    """Tables of the board's last release that the guide has not, or only of its other boards."""
    before = {key.benchmark for key, series in side.history.items() if side.last in series}
    gone = sorted(before - {key.benchmark for key in side.figures})
    for table in gone:
        against = f"{counted(len(gone), 'table')} of {len(before)} in {side.name} missing"
        of_table = (r for results in imported.results.values() for r in results if r.benchmark == table)
        rows = {cell.line: result.case for result in of_table for cell in result.published}
        odds = ODDS / 4 if rows else ODDS / 2 if len(gone) * 3 >= len(before) else ODDS
        for line, row in (rows or {1: ""}).items():
            yield Remark("missing", side.board, table, row, "", "no figures", against, line, odds)


def _form(imported: ImportedGuide, text: str) -> Iterator[Remark]:
    """Rows and tables that pages or readers cannot show: of another length than their header, unknown."""
    names: dict[int, str] = {}
    told = set()
    for table, match in zip(imported.source.tables, imported.matches, strict=True):
        name = match.match.table.benchmark if match else table.caption or " / ".join(table.section[-1:])
        names |= dict.fromkeys(range(table.line, table.line + table.text.count("\n") + 2), name)
        needs = len(table.header)
        for printed in (row for row in table.rows if len(row.cells) not in (0, needs)):
            told.add(printed.line)
            reason = f"{counted(len(printed.cells), 'cell')} below a header of {needs}"
            row = printed.cells[0][:60]
            yield Remark("form", "", name, row, "", "a row", reason, printed.line, ODDS / 3)
    for problem in (one for one in imported.unknown if one.line not in told):
        where = names.get(problem.line, "")
        row = problem.text.split("\n")[0][:60]
        yield Remark("form", "", where, row, "", "not read", problem.reason, problem.line, ODDS / 3)
    for problem in imported.source.warnings:
        title = text.splitlines()[problem.line - 1].strip()[:60]
        yield Remark("form", "", title, "", "", "a title", problem.reason, problem.line, ODDS)


def _should_be_high(key: Key) -> bool:
    metric = declared.metric(key)
    return metric is not None and metric.better is Direction.HIGHER
