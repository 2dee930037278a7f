"""The figures of a release: from stored runs, one set a board."""

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from evmperf.boards import board as boards
from evmperf.boards.options import General
from evmperf.judge.published import identity
from evmperf.judge.published.record import release_key
from evmperf.measure.runs.history import RunSource, SpoolFolder, StoredRun
from evmperf.model.errors import UsageError
from evmperf.model.figures import Figure, Key, figures
from evmperf.model.places import project
from evmperf.model.run import Run

BASELINES = project("baselines")
"""Published figures that come with the project."""


def stored(source: RunSource) -> list[StoredRun]:
    """All runs of a source, oldest first; raises UsageError when there are none."""
    runs = source.runs()
    if not runs:
        raise UsageError(f"{source}: holds no runs")
    return runs


def published() -> list[StoredRun]:
    """The published figures of the project's folder, a run a board and release; [] without it."""
    return SpoolFolder(BASELINES).runs()


NEWEST = "newest"
"""Instead of a release: the one that each board was measured with last."""


def same_release(given: str, other: str) -> bool:
    """Whether a release is meant: 11.00 means 11.00.00.00 too."""
    if given == other:
        return True
    key, other_key = release_key(given), release_key(other)
    return bool(key) and other_key[: len(key)] == key


def of_release(
    entries: Sequence[StoredRun], release: str, os: str = "", names: Sequence[str] = ()
) -> list[StoredRun]:
    """The runs of a release, and of some boards if they are named; of NEWEST, each board's runs of the
    release that it was measured with last. Raises UsageError when there are none, when they are of two
    operating systems, or when virtual and real boards would meet.
    """
    last = {entry.run.board: entry.run.release for entry in entries if entry.run.release}
    chosen = [entry for entry in entries if not names or entry.run.board in names]
    if os:
        chosen = [entry for entry in chosen if entry.run.os in ("", os)]  # U-Boot alone does not know it
    if release == NEWEST:
        chosen = [entry for entry in chosen if entry.run.release == last.get(entry.run.board, "")]
    else:
        chosen = [entry for entry in chosen if same_release(release, entry.run.release)]
    if not chosen:
        raise no_such_release(entries, release, names)
    kinds = sorted({entry.run.os for entry in chosen} - {""})
    if len(kinds) > 1:
        raise UsageError(f"release {release} was measured on {' and '.join(kinds)}: choose with --os")
    real = [entry for entry in chosen if not entry.run.facts.virtual]
    if real and len(real) != len(chosen):
        if names:
            raise UsageError("virtual and real boards never share a guide: name either with --board")
        return real
    return chosen


def no_such_release(entries: Sequence[StoredRun], release: str, names: Sequence[str] = ()) -> UsageError:
    """The error for a release that nobody measured, with those that there are."""
    mine = [entry for entry in entries if not names or entry.run.board in names]
    releases = sorted({f"{e.run.release} {e.run.os}" for e in mine if e.run.release})
    whose = f" of {' or '.join(names)}" if names else ""
    known = f"there are: {', '.join(releases)}" if releases else "name another folder of runs with --from"
    return UsageError(f"no runs of release {release}{whose} here; {known}")


def by_board(entries: Iterable[StoredRun]) -> dict[str, dict[Key, Figure]]:
    """Figures by board, the newest of a case; quick runs count only for boards without a full one."""
    entries = list(entries)
    full = {entry.run.board for entry in entries if entry.run.profile == "full"}
    by_name: dict[str, dict[Key, Figure]] = {}
    for entry in entries:
        if entry.run.profile == "full" or entry.run.board not in full:
            of_board = by_name.setdefault(entry.run.board, {})
            of_board.update(figures(entry.results()))
    return dict(sorted(by_name.items()))


def previous_release(entries: Sequence[StoredRun], run: Run) -> StoredRun | None:
    """The newest run of a board's release before that of a run, on the same system; None without one."""

    def kind(one: Run) -> tuple[str, bool, str]:
        return one.os, bool(one.facts.virtual), identity.board(one.board)

    limit, alike = release_key(run.release), [entry for entry in entries if kind(entry.run) == kind(run)]
    earlier = [entry for entry in alike if () < release_key(entry.run.release) < limit]
    newest = max(earlier, key=lambda e: release_key(e.run.release), default=None)
    return newest and StoredRun(replace(newest.run, board=run.board), newest.results)


def modules(names: Iterable[str]) -> list[General]:
    """What the table of evaluation modules has of some boards, from their files; of one without: nothing."""
    chosen = set(names)
    texts = {file: file.read_text(encoding="utf-8", errors="replace") for file in boards.files().values()}
    described = [boards.load(file) for file, text in texts.items() if any(map(text.count, chosen))]
    found = [replace(board.options.board, name=board.name) for board in described if board.name in chosen]
    return sorted({general.name: general for general in found}.values(), key=lambda general: general.name)
