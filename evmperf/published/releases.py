"""The figures of a release: from stored runs, one set a board."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.places import project
from evmperf.model.run import Run
from evmperf.runs.history import RunSource, SpoolFolder, StoredRun

BASELINES = project("baselines")
"""Published figures that come with the project."""


@dataclass(frozen=True)
class Module:
    """A line of the table of evaluation modules."""

    board: str
    name: str
    description: str


def stored(source: RunSource) -> list[StoredRun]:
    """All runs of a source, oldest first; raises UsageError when there are none."""
    found = source.everything()
    if not found:
        raise UsageError(f"{source}: holds no runs")
    return found


def published() -> list[StoredRun]:
    """The published figures that come with the project, a run a board and release; [] where the
    project's folder is not there.
    """
    return SpoolFolder(BASELINES).everything()


def is_virtual(run: Run) -> bool:
    """Whether a run is a virtual EVM's."""
    return bool(run.facts.get("virtual"))


def release_key(release: str) -> tuple[int, ...]:
    """What releases sort by: 9.2 is before 10.0. Images that are no release have ()."""
    if not re.fullmatch(r"\d+([._]\d+)*", release):
        return ()
    return tuple(int(number) for number in re.findall(r"\d+", release))


_BEGAN = (
    ("7.0", "2020-06"), ("7.1", "2020-10"), ("7.2", "2020-12"), ("7.3", "2021-04"),
    ("8.0", "2021-07"), ("8.1", "2021-11"), ("8.2", "2022-03"), ("8.3", "2022-06"),
    ("8.4", "2022-09"), ("8.5", "2022-12"), ("8.6", "2023-03"), ("9.0", "2023-07"),
    ("9.1", "2023-11"), ("9.2", "2024-03"), ("10.0", "2024-07"), ("10.1", "2024-12"),
    ("11.0", "2025-03"), ("11.1", "2025-07"), ("11.2", "2025-12"), ("12.0", "2026-04"),
)  # fmt: skip
"""The month in which work on a release's guides began, as the guides that name both show."""


def of_date(text: str) -> str:
    """The release that was in work at the date (YYYY-MM-DD) in a text; "" where there is none."""
    found = re.search(r"20\d\d-[01]\d-[0-3]\d", text)
    return max(
        (name for name, began in _BEGAN if found and began <= found[0]), key=release_key, default=""
    )


NEWEST = "newest"
"""Instead of a release: the one that each board was measured with last."""


def same_release(given: str, found: str) -> bool:
    """Whether a release is meant: 11.00 means 11.00.00.00 too."""
    if given == found:
        return True
    wanted, there = release_key(given), release_key(found)
    return bool(wanted) and there[: len(wanted)] == wanted


def of_release(
    there: Sequence[StoredRun], release: str, os: str = "", wanted: Sequence[str] = ()
) -> list[StoredRun]:
    """The runs of a release, and of some boards if they are named; of NEWEST, each board's runs
    of the release that it was measured with last.

    Raises UsageError when there are none, when they are of two operating systems, or when virtual
    and real boards would meet.
    """
    last = {entry.run.board: entry.run.release for entry in there}
    found = [
        entry
        for entry in there
        if (
            entry.run.release == last[entry.run.board]
            if release == NEWEST
            else same_release(release, entry.run.release)
        )
        and (not os or entry.run.os == os)
        and (not wanted or entry.run.board in wanted)
    ]
    if not found:
        raise no_such_release(there, release, wanted)
    kinds = sorted({entry.run.os for entry in found})
    if len(kinds) > 1:
        raise UsageError(
            f"release {release} was measured on {' and '.join(kinds)}: choose with --os"
        )
    real = [entry for entry in found if not is_virtual(entry.run)]
    if real and len(real) != len(found):
        if wanted:
            raise UsageError(
                "virtual and real boards never share a guide: name either with --board"
            )
        return real
    return found


def no_such_release(
    there: Sequence[StoredRun], release: str, wanted: Sequence[str] = ()
) -> UsageError:
    """The error for a release that nobody measured, with those that there are."""
    mine = [entry for entry in there if not wanted or entry.run.board in wanted]
    known = sorted({f"{e.run.release} {e.run.os}" for e in mine if e.run.release})
    whose = f" of {' or '.join(wanted)}" if wanted else ""
    return UsageError(
        f"no runs of release {release}{whose} here; there are: {', '.join(known) or 'none'}"
    )


def by_board(entries: Iterable[StoredRun]) -> dict[str, dict[Key, Figure]]:
    """Figures by board; of a case measured in several runs, the newest.

    Runs of the quick profile count only for boards that have no full one.
    """
    entries = list(entries)
    full = {entry.run.board for entry in entries if entry.run.profile == "full"}
    found: dict[str, dict[Key, Figure]] = {}
    for entry in entries:
        if entry.run.profile == "full" or entry.run.board not in full:
            known = found.setdefault(entry.run.board, {})
            known.update(figures(entry.results()))
    return dict(sorted(found.items()))


def previous_release(there: Sequence[StoredRun], release: str, os: str) -> list[StoredRun]:
    """The runs of the newest release before the given one, by operating system; [] if none."""
    limit = release_key(release)
    earlier = [e for e in there if e.run.os == os and () < release_key(e.run.release) < limit]
    if not earlier:
        return []
    newest = max(release_key(entry.run.release) for entry in earlier)
    return [entry for entry in earlier if release_key(entry.run.release) == newest]


def modules(names: Iterable[str]) -> list[Module]:
    """Lines of the table of evaluation modules, from the board files; boards without one: none."""
    wanted = set(names)
    known = map(catalogue.board, boards.files().values())
    return [
        Module(board.name, board.options.board.title, board.options.board.description)
        for board in sorted(known, key=lambda board: board.name)
        if board.name in wanted
    ]
