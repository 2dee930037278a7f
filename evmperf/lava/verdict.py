"""The outcome of a job by its cases: LAVA calls a job Complete even when they failed."""

from dataclasses import dataclass

from evmperf.boards.board import Board
from evmperf.lava import importing, joblog, outcome, render
from evmperf.lava.selection import SUITE, JobKind, case_name
from evmperf.lava.server import LavaJob, LavaServer
from evmperf.measure import boardfile
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus, of_kind


@dataclass(frozen=True)
class JobVerdict:
    """Exit status (LAB_BROKEN if LAVA itself failed), and why."""

    exit_status: ExitStatus
    lines: list[str]


def judge(server: LavaServer, job: LavaJob, board: Board | None = None) -> JobVerdict:
    """Compare the cases that a finished job reported with those that it should have. `board` is for a
    board file that is not in env/. Raises UsageError for a job that evmperf did not make.
    """
    header = render.definition_header(job.definition)
    if header is None:
        raise UsageError(f"job {job.id} was not made by evmperf: its metadata names no benchmarks")
    reported = {r.name: r.result for r in server.results(job.id) if r.suite == SUITE}
    expected = _expected(header, job, board)
    wrong = [
        f"{name}: {reported.get(name, 'did not report')}" for name in expected if reported.get(name) != "pass"
    ]
    well = len(expected) - len(wrong)
    if job.health == "Complete" and header["kind"] == JobKind.BOOT:
        last = f"job {job.id} is complete; its boot times are in its log: read them with"
        return JobVerdict(ExitStatus.OK, [f"{last} `evmperf lava import {job.id}`"])
    if job.health == "Complete":
        last = f"job {job.id} is complete: {well} of {len(expected)} cases passed"
        return JobVerdict(ExitStatus.FAILED if wrong else ExitStatus.OK, [*wrong, last])
    failure = _failure(server, job)
    why = f"{failure} ({failure.kind})" if failure else "LAVA gives no reason"
    last = f"job {job.id} is {job.health}: {why}; {well} of {len(expected)} cases passed"
    status = of_kind(failure.kind) if failure else ExitStatus.LAB_BROKEN
    return JobVerdict(status, [*wrong, last])


def _failure(server: LavaServer, job: LavaJob) -> EvmperfError | None:
    if job.health == "Canceled":
        return LabError(outcome.CANCELLED)  # perhaps before it had a log
    try:
        return outcome.failure(joblog.parse(server.log(job.id), f"job {job.id}"))
    except LabError as error:
        return error


def _expected(header: dict[str, str], job: LavaJob, board: Board | None) -> list[str]:
    if header["kind"] == JobKind.BOOT:
        return []
    board = board or boardfile.named(header["board_file"])
    selection = importing.selection_of(header, board, f"job {job.id}")
    return [case_name(benchmark, case) for benchmark, case in selection.cases]
