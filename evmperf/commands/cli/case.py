"""`evmperf case`: one case packed to post, and measured again; a console read again."""

import argparse
import json
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from evmperf.benchmarks import energy
from evmperf.boards.console import record, review
from evmperf.boards.console.review import Reviewed
from evmperf.boards.prompts import INIT_SHELL_PROMPT, LOGIN_PROMPT
from evmperf.commands.app import again, why
from evmperf.commands.cli.arguments import JSON, RESULTS, RUN, argument, command, group
from evmperf.judge import against
from evmperf.measure import supply
from evmperf.measure.runs import casefile, spool
from evmperf.measure.runs.history import run_folder
from evmperf.model.errors import LabError, UsageError
from evmperf.model.outlets import line
from evmperf.model.records import BootRecord
from evmperf.model.replies import WantedSession
from evmperf.model.stats import rounded
from evmperf.publish.pages import look

group(
    "case",
    "What to send with a question: one case of a run as a file, and its measurement on another board\n"
    "(docs/ab.md); a console, read again.",
)

_MOST = 5
"""Parts of a boot's phase that are shown."""


@command(
    "case pack",
    RUN,
    RESULTS,
    argument("case", help="BENCHMARK CASE, as one word in quotes"),
    argument("-o", type=Path, dest="output", metavar="FILE.evmperf", required=True),
)
def _case(options: argparse.Namespace) -> None:
    """Pack one case of a run into a file to post: samples, raw outputs, facts, state, console. Host names,
    addresses, MACs, serial numbers and keys are replaced; the file's content is listed. `evmperf show`,
    `why`, `compare` and `case measure` read the file.
    """
    folder = run_folder(options.run, options.results)
    benchmark, _, case = options.case.partition(" ")
    packed, listed = casefile.pack(folder, benchmark, case, [socket.gethostname()])
    try:
        options.output.write_bytes(packed)
    except OSError as error:
        raise LabError(f"{options.output}: cannot be written: {error.strerror}") from None
    print("\n".join(map(line, [f"{options.output} ({len(packed)} bytes) has:", *listed, ""])))
    folder = casefile.unpack(options.output)
    (answer, *_) = why.explain(folder, options.case).answers
    (result, *_) = spool.read_results(folder)
    words = {"run": spool.read_run(folder), "result": result, "answer": answer}
    print(look.render("commands/cli/case.txt.j2", name=options.output.name, **words))


@command(
    "case measure",
    argument("file", type=Path, metavar="FILE.evmperf"),
    argument("--lg-env", dest="board", metavar="BOARD.yaml", required=True),
    RESULTS,
    epilog="""Exit status: that of the measurement, else that of `evmperf compare`.""",
)
def _reproduce(options: argparse.Namespace) -> int:
    """Measure the case of a case file on a board in the same way, and compare."""
    packed = run_folder(str(options.file), options.results)
    case = next(spool.results_in(packed), None)
    if case is None:
        raise UsageError(f"{options.file}: has no case")
    folder, measured = again.measure(options.results, case, WantedSession(board=options.board))
    judgement = against.between([packed], [folder])
    for verdict in judgement.verdicts:
        both = (("there", verdict.baseline), ("here", verdict.value))
        sides = (f"{side} {'not known' if v is None else f'{rounded(v)} {verdict.unit}'}" for side, v in both)
        print(line(f"{verdict.key}: {verdict.outcome} ({', '.join(sides)})"))
    print(line(f"measured into {folder}"))
    return measured or judgement.exit_status


@command(
    "case energy",
    RUN,
    RESULTS,
    argument("--csv", type=Path, required=True, metavar="FILE", help="a meter's readings: time, watts"),
    argument(
        "--clock-ahead",
        type=float,
        default=0.0,
        metavar="S",
        help="how far the meter's clock is ahead of the measuring machine's, in seconds (default: 0)",
    ),
)
def _energy(options: argparse.Namespace) -> None:
    """Joins an external meter's readings with all cases of a run: mean power and energy of each tool's
    window, J per MB, boot or iteration (docs/power.md). A time is in seconds since the epoch or as
    2026-11-24T17:04:34Z. Joining again replaces the figures. Afterwards, write the report again, and push the
    run or add it to the store again.
    """
    folder = run_folder(options.run, options.results)
    try:
        text = options.csv.read_text("utf-8", "replace")
    except OSError as error:
        raise UsageError(f"{options.csv}: cannot be read: {error.strerror}") from None
    series = energy.read(text, options.csv.name)
    for result in supply.join(folder, options.csv.name, series, options.clock_ahead):
        values = [s for s in result.samples if energy.metric(s.metric)]
        energy_text = ", ".join(f"{s.metric} {s.value:.4g} {s.unit}" for s in values[:_MOST])
        within = max(window.error_s for window in result.windows)
        why = result.conditions.get("no_energy", "")
        print(line(f"{result.benchmark} {result.case}: {energy_text or why} (window within {within:.3f} s)"))


@command(
    "case replay",
    RESULTS,
    JSON,
    argument(
        "file",
        help=(
            "a console.log, or a run's folder, its name below --results or the beginning of it, "
            "`last`, or `last~1`"
        ),
    ),
    argument("--prompt", default="", help="regular expression that ends a boot"),
)
def _replay(options: argparse.Namespace) -> None:
    """Reads the console.log of an earlier run again with today's evmperf, and shows each boot and the
    changes. It switches and writes nothing. Send this file with the report of a boot problem: of
    a password it has the length only.
    """
    path = Path(options.file)
    if not path.is_file():
        path = run_folder(options.file, options.results) / "console.log"
    ends = (options.prompt,) if options.prompt else (LOGIN_PROMPT, INIT_SHELL_PROMPT)
    try:
        boots = list(_boots(path, ends))
    except (LabError, OSError, re.error) as failed:
        raise UsageError(f"{path}: cannot be replayed: {failed}") from failed
    if not boots:
        raise UsageError(f"{path}: has no power-on, so it has no boot")
    if options.json:
        print(json.dumps([_entry(boot) for boot in boots], indent=1))
        return
    print(look.render("commands/cli/replay.txt.j2", boots=boots, most=_MOST), end="")


def _boots(path: Path, prompts: tuple[str, ...]) -> Iterator[Reviewed]:
    """The boots of a console, beside those of the run in its folder; a file alone has none."""
    entries = spool.read_records(path.parent) if (path.parent / spool.RECORDS).exists() else []
    boots = [entry for entry in entries if isinstance(entry, BootRecord)]
    recorded = {mark.mono_ns: boot for boot in boots for mark in boot.marks if mark.phase == "power_on"}
    for number, records in enumerate(review.boots(record.read(path)), 1):
        yield review.review(number, records, prompts, recorded.get(records[0].mono_ns))


def _entry(boot: Reviewed) -> dict[str, object]:
    return {
        "boot": boot.number,
        "marks": [
            {"phase": str(mark.phase), "mono_ns": mark.mono_ns, "error_s": mark.error_s, "text": mark.text}
            for mark in boot.marks.values()
        ],
        "alarm": {"name": boot.alarm.name, "text": boot.alarm.text} if boot.alarm else None,
        "notes": list(boot.notes),
        "times": list(boot.tree.notes),
        "parts": [vars(part) for part in boot.tree.parts],
        "changes": list(boot.changes),
    }
