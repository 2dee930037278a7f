"""Checks over what a board answers in Linux. Each is a function of the board file and of `run`, which gives a
command's exit status and text; it returns the sentence of a good one, or yields findings, and raises
EvmperfError or Noted.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import scratch
from evmperf.boards import modes
from evmperf.boards.board import Board
from evmperf.lab.desk.finding import CheckFinding, CheckOutcome
from evmperf.model.errors import Kind, ToolError

Run = Callable[[str], tuple[int, str]]
Found = Iterator[CheckFinding | str] | str

WORD = "evmperf.lab.doctor"
"""A kernel argument that does nothing: a word with a dot is a module's, and no module has it."""


def scratch_partitions(board: Board, run: Run) -> Iterator[CheckFinding | str]:
    """Whether each driver's scratch partition may be overwritten."""
    checks = scratch_checks(board)
    if not checks:
        yield "the board file names none (docs/day-one.md)"
    for driver, check in checks.items():
        status, text = run(check)
        step, where = f"scratch {driver}", board.text(driver, "scratch")
        if status:
            lines = text.strip().splitlines() or [f"exit status {status}"]
            yield CheckFinding(step, CheckOutcome.BAD, lines[-1], Kind.LAB)
        else:
            yield CheckFinding(step, CheckOutcome.OK, f"{where} may be overwritten")


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


def tools(board: Board, run: Run) -> str:
    """Whether the programs of the board's benchmarks are there."""
    users = tools_on(board)
    if lacking := missing(run(look_for(users))[1], users):
        raise ToolError(
            f"not on the board: {lacking}; use an image with them, or give the reason in options.absent"
        )
    return f"all {len(users)} programs are there"


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


def look_for(tools: Iterable[str]) -> str:
    """A command that prints those of the programs that are not there."""
    words = " ".join(shlex.quote(tool) for tool in tools)
    return f"for t in {words}; do command -v $t >/dev/null || echo $t; done"


def missing(printed: str, users: Mapping[str, list[str]]) -> str:
    """What look_for printed, each with whom it is for; "" for nothing."""
    words = [word for word in printed.split() if word in users]
    more = {word: f" and {len(users[word]) - 1} more" if users[word][1:] else "" for word in words}
    return ", ".join(f"{word} (for {users[word][0]}{more[word]})" for word in words)
