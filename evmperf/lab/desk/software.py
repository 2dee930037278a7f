"""Checks over what a board answers at U-Boot's prompt and in Linux. A check of Linux is a function of the
board file and of `run`, which gives a command's exit status and text; it returns the sentence of a good one,
or yields findings, and raises EvmperfError or Noted.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark
from evmperf.benchmarks.families import scratch
from evmperf.boards import modes
from evmperf.boards.board import Board
from evmperf.boards.console import booted
from evmperf.lab.desk.finding import CheckFinding, CheckOutcome, Noted, bad
from evmperf.model.errors import LabError, ToolError

Run = Callable[[str], tuple[int, str]]
Found = Iterator[CheckFinding | str] | str

WORD = "evmperf.lab.doctor"
"""A kernel argument that does nothing: a word with a dot is a module's, and no module has it."""

UENV = (
    "for f in /boot/uEnv.txt /run/media/*/uEnv.txt /media/*/uEnv.txt; do "
    'if [ -r "$f" ]; then echo "# $f"; cat "$f"; fi; done'
)
"""Prints uEnv.txt of the mounted partitions, each after its path."""

_DECIDING = re.compile(
    r"^\s*(optargs|bootargs|args_\w+|bootcmd\w*|uenvcmd|mmcdev|bootpart)\s*=", re.MULTILINE
)


def environment(variables: Mapping[str, str], variable: str) -> str:
    """The source of the kernel's command line by U-Boot's environment; raises LabError or Noted."""
    if not variables:
        raise Noted("U-Boot's printenv shows no variable: whether kernel arguments arrive is unknown")
    target = variable
    if not any(f"${{{variable}}}" in value for value in variables.values()):
        target = "bootargs"
    setters = booted.overwriting(variables, target)
    changed = {line.split(" ")[1] for line in booted.arguments_commands(variables, variable, WORD)}
    if stuck := [name for name in setters if name not in changed]:
        raise LabError(
            f"{', '.join(stuck)} sets {target} itself and cannot be changed at the prompt (quotes, "
            f"several lines, or too long): put ${{{variable}}} into it with setenv and saveenv"
        )
    notes = []
    if target == "bootargs" and not setters:
        notes.append(
            f"no script reads {variable} or sets bootargs: extlinux.conf or an EFI boot loader may "
            f"decide the command line (`append` of an extlinux.conf needs ${{{variable}}}); whether "
            f"arguments arrive shows below"
        )
    elif target == "bootargs":
        notes.append(f"no script reads {variable}, so evmperf adds kernel arguments in {', '.join(setters)}")
    elif setters:
        notes.append(
            f"{', '.join(setters)} sets {variable} itself: evmperf gives it the kernel arguments, "
            f"for each boot"
        )
    importers = [name for name, value in variables.items() if re.search("uEnv|bootenvfile", value)]
    if importers or "bootenvfile" in variables:
        notes.append("uEnv.txt is imported at boot and overrides variables set at the prompt")
    if variables.get("bootdelay") == "0":
        notes.append("bootdelay is 0: `setenv bootdelay 2; saveenv`, or boots may not stop at the prompt")
    if notes:
        raise Noted("; ".join(notes))
    return f"{variable} reaches the kernel's command line, and nothing overwrites it"


def uenv(_: Board, run: Run) -> str:
    """What uEnv.txt of the mounted partitions decides."""
    printed = run(UENV)[1]
    files = re.findall(r"^# (/\S+uEnv\.txt)$", printed, re.MULTILINE)
    if not files:
        return "none on the mounted partitions"
    deciding = list(dict.fromkeys(_DECIDING.findall(printed)))
    if deciding:
        raise Noted(
            f"{', '.join(files)} sets {', '.join(deciding)}: this overrides evmperf's settings; "
            f"comment such lines out if a boot is not the one asked for"
        )
    overlays = re.findall(r"^\s*name_overlays\s*=\s*(\S.*)$", printed, re.MULTILINE)
    suffix = f", overlays {'; '.join(overlays)}" if overlays else ""
    return f"{', '.join(files)} touches neither arguments nor medium{suffix}"


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
            yield bad(step, LabError(lines[-1]))
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
            commands[driver] = scratch.find_flash(partition, 0, "scratch")
        else:
            commands[driver] = scratch.fits(
                partition, driver, whole_disk=scratch.is_whole_disk(board, driver)
            )
    return commands


def benchmarks_of(board: Board) -> list[Benchmark]:
    """The benchmarks of the board's drivers, but those that its file calls absent."""
    absent = board.options.absent
    return [
        benchmark
        for benchmark in catalogue.benchmarks().values()
        if benchmark.driver in board.features
        and benchmark.driver not in absent
        and benchmark.name not in absent
    ]


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
    """The programs that the tester must have, each with its benchmarks."""
    return _users((benchmark.name, benchmark.tester_tools) for benchmark in benchmarks_of(board))


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


LINUX: Mapping[str, Callable[[Board, Run], Found]] = {
    "uEnv.txt": uenv,
    "scratch": scratch_partitions,
    "tools": tools,
}
"""The checks of a running Linux, by their names in `evmperf doctor`, in their order."""
