"""The figures of a release: from stored runs, one set a board."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from msgspec.structs import replace

from evmperf.boards import board as boards
from evmperf.guides.published import identity
from evmperf.guides.published.record import release_key
from evmperf.measure.runs.history import RunSource, SpoolFolder, StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.places import project
from evmperf.model.run import Run

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
    found = source.runs()
    if not found:
        raise UsageError(f"{source}: holds no runs")
    return found


def published() -> list[StoredRun]:
    """The published figures of the project's folder, a run a board and release; [] without it."""
    return SpoolFolder(BASELINES).runs()


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
    """The runs of a release, and of some boards if they are named; of NEWEST, each board's runs of the
    release that it was measured with last. Raises UsageError when there are none, when they are of two
    operating systems, or when virtual and real boards would meet.
    """
    last = {entry.run.board: entry.run.release for entry in there if entry.run.release}
    found = [entry for entry in there if not wanted or entry.run.board in wanted]
    if os:
        found = [entry for entry in found if entry.run.os in ("", os)]  # U-Boot alone does not know it
    if release == NEWEST:
        found = [entry for entry in found if entry.run.release == last.get(entry.run.board, "")]
    else:
        found = [entry for entry in found if same_release(release, entry.run.release)]
    if not found:
        raise no_such_release(there, release, wanted)
    kinds = sorted({entry.run.os for entry in found} - {""})
    if len(kinds) > 1:
        raise UsageError(f"release {release} was measured on {' and '.join(kinds)}: choose with --os")
    real = [entry for entry in found if not entry.run.facts.virtual]
    if real and len(real) != len(found):
        if wanted:
            raise UsageError("virtual and real boards never share a guide: name either with --board")
        return real
    return found


def no_such_release(there: Sequence[StoredRun], release: str, wanted: Sequence[str] = ()) -> UsageError:
    """The error for a release that nobody measured, with those that there are."""
    mine = [entry for entry in there if not wanted or entry.run.board in wanted]
    known = sorted({f"{e.run.release} {e.run.os}" for e in mine if e.run.release})
    whose = f" of {' or '.join(wanted)}" if wanted else ""
    return UsageError(f"no runs of release {release}{whose} here; there are: {', '.join(known) or 'none'}")


def by_board(entries: Iterable[StoredRun]) -> dict[str, dict[Key, Figure]]:
    """Figures by board, the newest of a case; quick runs count only for boards without a full one."""
    entries = list(entries)
    full = {entry.run.board for entry in entries if entry.run.profile == "full"}
    found: dict[str, dict[Key, Figure]] = {}
    for entry in entries:
        if entry.run.profile == "full" or entry.run.board not in full:
            known = found.setdefault(entry.run.board, {})
            known.update(figures(entry.results()))
    return dict(sorted(found.items()))


def previous_release(there: Sequence[StoredRun], run: Run) -> StoredRun | None:
    """The newest run of a board's release before that of a run, on the same system; None without one."""

    def kind(one: Run) -> tuple[str, bool, str]:
        return one.os, bool(one.facts.virtual), identity.board(one.board)

    limit, alike = release_key(run.release), [entry for entry in there if kind(entry.run) == kind(run)]
    earlier = [entry for entry in alike if () < release_key(entry.run.release) < limit]
    newest = max(earlier, key=lambda e: release_key(e.run.release), default=None)
    return newest and StoredRun(replace(newest.run, board=run.board), newest.results)


def modules(names: Iterable[str]) -> list[Module]:
    """Lines of the table of evaluation modules, from the board files; boards without one: none."""
    wanted = set(names)
    texts = {file: file.read_text(encoding="utf-8", errors="replace") for file in boards.files().values()}
    known = [boards.load(file) for file, text in texts.items() if any(map(text.count, wanted))]
    said = {board.name: board.options.board for board in known if board.name in wanted}
    return [Module(name, board.title, board.description) for name, board in sorted(said.items())]
