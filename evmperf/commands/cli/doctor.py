"""`evmperf doctor`: whether a board and its lab are ready, and what a recorded console tells."""

import argparse
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path

from evmperf.boards.console import record, review
from evmperf.boards.console.review import Reviewed
from evmperf.boards.prompts import INIT_SHELL_PROMPT, LOGIN_PROMPT
from evmperf.commands.cli.arguments import COORDINATOR, JSON, RESULTS, argument, command
from evmperf.commands.cli.terminal import note
from evmperf.lab.desk.examination import Examination
from evmperf.lab.desk.finding import CheckFinding, CheckOutcome, Noted, checked, exit_status
from evmperf.measure import boardfile
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import run_folder
from evmperf.model.errors import LabError, UsageError
from evmperf.model.records import BootRecord
from evmperf.publish.influx.client import Store, load
from evmperf.publish.pages import look

_WIDTH = 14
_MOST = 5
"""Parts of a boot's phase that are shown."""
_ANSWER_S = 5.0
_LAST_MINUTE = "from(bucket: bucket) |> range(start: -1m) |> limit(n: 1)"


@command(
    "doctor",
    argument("board", nargs="?", default="", metavar="BOARD", help="a board file, as for pytest --lg-env"),
    COORDINATOR,
    JSON,
    argument("--replay", default="", metavar="LOG", help="read a console.log, or that of a run, instead"),
    argument("--prompt", default="", metavar="REGEX", help="what ends a boot, with --replay"),
    RESULTS,
    argument("--console", type=Path, metavar="FILE", help="record the console here, for --replay"),
    epilog="""Exit status: 0 nothing is bad; else that of the first bad step: 1 the board or its software,
    3 the lab, 4 the call, the board file, or a board in use.
    """,
)
def _doctor(options: argparse.Namespace) -> int:
    """Checks a board and its lab, one line per step: board file, coordinator, place, console, power switch,
    U-Boot, Linux, kernel command line, root medium, files, scratch partitions, tools, tester, meter,
    this machine's clock and real-time priority, InfluxDB.

    The board is held, power-cycled once, booted, and switched off again. The doctor
    writes only a script to its /tmp, nothing to its disks or U-Boot's environment. It skips steps that
    depend on a failed one. docs/day-one.md leads through all of this with a new board.

    With --replay it needs no board: it reads a recorded console, own or sent by somebody, and shows each boot
    with its marks and the cause of its failure. Of a password such a file has the length only.

      evmperf doctor virtual                              try it without a board
      LG_PLACE=my-am64x evmperf doctor am64x --console console.log
      evmperf doctor --replay console.log
    """
    if options.replay:
        return _replay(options)
    if not options.board:
        raise UsageError("name a board file, or a console with --replay")
    board = boardfile.named(options.board)
    tell = (lambda _: None) if options.json else note
    examination = Examination(board, options.coordinator, options.console, tell)
    findings: list[CheckFinding] = []
    for finding in _findings(examination):
        findings.append(finding)
        if not options.json:
            word = "-" if finding.outcome is CheckOutcome.UNCHECKED else finding.outcome
            print(f"{word:<5}{finding.step:<{_WIDTH}} {finding.text}", flush=True)
    if options.json:
        print(json.dumps([asdict(finding) | {"kind": finding.kind or ""} for finding in findings], indent=1))
        return exit_status(findings)
    count = {outcome: sum(f.outcome is outcome for f in findings) for outcome in CheckOutcome}
    print(
        f"{board.name}: {count[CheckOutcome.OK]} ok, {count[CheckOutcome.NOTE]} notes, "
        f"{count[CheckOutcome.BAD]} bad, {count[CheckOutcome.UNCHECKED]} not checked"
    )
    return exit_status(findings)


def _findings(examination: Examination) -> Iterator[CheckFinding]:
    yield from examination.findings()
    yield checked("InfluxDB", influx)


def influx(environment: Mapping[str, str] = os.environ) -> str:
    """Say that the bucket can be read; raises UsageError, LabError or Noted."""
    settings = load(environment)
    if settings is None:
        raise Noted("not configured, results stay in results/: docs/results.md says how to send them")
    with Store(settings, _ANSWER_S) as store:
        next(store.query(_LAST_MINUTE), None)
    return f"{settings} can be read"


def _replay(options: argparse.Namespace) -> int:
    path = Path(options.replay)
    if not path.is_file():
        path = run_folder(options.replay, options.results) / "console.log"
    ends = (options.prompt,) if options.prompt else (LOGIN_PROMPT, INIT_SHELL_PROMPT)
    try:
        boots = list(_boots(path, ends))
    except (LabError, OSError, re.error) as failed:
        raise UsageError(f"nothing is replayed: {failed}") from failed
    if not boots:
        raise UsageError(f"{path}: has no power-on, so it has no boot")
    if options.json:
        print(json.dumps([_entry(boot) for boot in boots], indent=1))
    else:
        print(look.render("commands/cli/replay.txt.j2", boots=boots, most=_MOST), end="")
    return 0


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
