"""`evmperf doctor`: is the lab ready, step by step, with a remedy for what is not."""

import argparse
import json
from pathlib import Path

from evmperf.cli.arguments import BOARD, COORDINATOR, JSON, arg, command
from evmperf.cli.terminal import note
from evmperf.doctor.examination import Examination
from evmperf.doctor.finding import CheckFinding, CheckOutcome, exit_status
from evmperf.measure import boardfile

_ABOUT = """\
Checks a board and its lab, one line per step: board file, coordinator, place, console, power switch,
U-Boot, its environment, Linux, kernel command line, root medium, uEnv.txt, scratch partitions,
tools, tester, meter, this machine's clock and real-time priority, InfluxDB.

The board is held, power-cycled once, booted, and switched off again. The doctor
writes only a script to its /tmp, nothing to its disks or U-Boot's environment. It skips steps that
depend on a failed one. docs/day-one.md leads through all of this with a new board.

  evmperf doctor virtual                              try it without a board
  LG_PLACE=my-am64x evmperf doctor am64x --console console.log
"""
_EPILOG = """\
Exit status: 0 nothing is bad; else that of the first bad step: 1 the board or its software, 3 the
lab, 4 the call, the board file, or a board in use.
"""
_WIDTH = 14


@command(
    "doctor",
    _ABOUT,
    BOARD,
    COORDINATOR,
    JSON,
    arg("--console=FILE", "record the console here, for evmperf replay", type=Path),
    epilog=_EPILOG,
)
def _doctor(options: argparse.Namespace) -> int:
    board = boardfile.named(options.board)
    examination = Examination(
        board, options.coordinator, options.console, (lambda _: None) if options.json else note
    )
    found: list[CheckFinding] = []
    for finding in examination.findings():
        found.append(finding)
        if not options.json:
            print(f"{finding.outcome:<5}{finding.step:<{_WIDTH}} {finding.text}", flush=True)
    if options.json:
        print(json.dumps([finding.as_dict() for finding in found], indent=1))
        return exit_status(found)
    count = {outcome: sum(f.outcome is outcome for f in found) for outcome in CheckOutcome}
    print(
        f"{board.name}: {count[CheckOutcome.OK]} ok, {count[CheckOutcome.NOTE]} notes, "
        f"{count[CheckOutcome.BAD]} bad, {count[CheckOutcome.UNCHECKED]} not checked"
    )
    return exit_status(found)
