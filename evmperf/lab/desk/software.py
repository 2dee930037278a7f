"""What a board file needs of the board's Linux and of the tester beside it."""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import scratch
from evmperf.boards import modes
from evmperf.boards.board import Board
from evmperf.measure.bench import ShellReply

WORD = "evmperf.lab.doctor"
"""A kernel argument that does nothing: a word with a dot is a module's, and no module has it."""


def scratch_checks(board: Board) -> dict[str, str]:
    """A shell command for each driver's scratch partition, that fails with a sentence."""
    commands = {}
    for driver in sorted(board.features):
        partition = str(board.sections.get(driver, {}).get("scratch", ""))
        if not partition or driver in board.options.absent:
            continue
        if driver == "ospi":
            commands[driver] = scratch.on_flash("find_flash", partition, 0, "scratch")
        else:
            commands[driver] = scratch.fits(
                partition, driver, whole_disk=scratch.is_whole_disk(board, driver)
            )
    return commands


def tools_on(board: Board) -> dict[str, list[str]]:
    """The programs that the board must have, each with its benchmarks that the board supports."""
    benchmarks = catalogue.benchmarks().values()
    return _users((b.name, b.tools_on(board)) for b in benchmarks if not b.unsupported(board))


def ti_ways(
    name: str, users: Mapping[str, Sequence[str]], lacking: Collection[str], printed: str
) -> Iterator[tuple[str, bool]]:
    """How the tables of TI's programs (`users` by program) are measured on the board `name`, and its modes
    below TI's expectation by what modes.QUESTION printed: each in words, and whether it spoils figures. Of a
    board without a name, which is none of TI's, only what its programs measure.
    """
    for program, tables in users.items():
        if program not in lacking:
            yield f"{len(tables)} tables measured as TI does, by {program}", False
        elif name:
            way = f"{len(tables)} tables are measured in evmperf's way and do not compare with the guides'"
            yield f"{way}: {program} is not there; {catalogue.TI_IMAGE}", False
    for driver, mode in modes.lesser_modes(name, printed):
        yield f"{driver}: {mode}", True


def tools_beside(board: Board) -> dict[str, list[str]]:
    """The programs that the tester must have, each with its benchmarks, but for absent ones."""
    absent = board.options.absent
    drivers = board.features.difference(absent)
    benchmarks = catalogue.benchmarks().values()
    return _users(
        (b.name, b.tester_tools) for b in benchmarks if b.driver in drivers and b.name not in absent
    )


def _users(needs: Iterable[tuple[str, Iterable[str]]]) -> dict[str, list[str]]:
    users: dict[str, list[str]] = {}
    for name, tools in needs:
        for tool in tools:
            users.setdefault(tool, []).append(name)
    return dict(sorted(users.items()))


def missing(users: Mapping[str, list[str]], run: Callable[[str], ShellReply]) -> str:
    """The programs that are not where `run` runs a command, each with whom it is for; "" for none."""
    words = " ".join(map(shlex.quote, users))
    printed = run(f"for t in {words}; do command -v $t >/dev/null || echo $t; done").text
    absent = [word for word in printed.split() if word in users]
    more = {word: f" and {len(users[word]) - 1} more" if users[word][1:] else "" for word in absent}
    return ", ".join(f"{word} (for {users[word][0]}{more[word]})" for word in absent)
