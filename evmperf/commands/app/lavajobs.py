"""LAVA jobs: submitted, followed, judged, read and cancelled."""

from pathlib import Path

from evmperf.boards.board import Board
from evmperf.boards.images import WHOLE
from evmperf.commands.app.requests import (
    Cancel,
    Done,
    Follow,
    Hear,
    Import,
    Imported,
    JobState,
    Judged,
    Submit,
    Submitted,
)
from evmperf.commands.lava import importing, joblog, render, selection
from evmperf.commands.lava.selection import JobKind, case_name
from evmperf.commands.lava.server import LavaJob, LavaServer, check_size, connect, job_number
from evmperf.lab.provision.cache import open_image
from evmperf.measure import boardfile
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.replies import Remark


def submit(request: Submit, hear: Hear) -> Submitted:
    """Submit a job; raises UsageError for what is wrong with it, LabError for the server."""
    given = Path(request.board)
    is_job = given.is_file() and "\njob_name:" in f"\n{given.read_text(encoding='utf-8')}"
    text = given.read_text(encoding="utf-8") if is_job else definition(request, hear)
    server = connect(request.identity)
    numbers = server.submit(text)
    return Submitted(jobs=tuple((number, server.job(number).url) for number in numbers))


def definition(request: Submit, hear: Hear) -> str:
    """The job, checked as far as it can be without a server; raises UsageError."""
    board = boardfile.named(request.board)
    kind = JobKind(request.kind)
    profile = request.profile or board.options.board.profile
    chosen = selection.select(board, kind, profile, request.keyword)
    for line in chosen.refused if request.keyword else ():
        hear(Remark(sentence=f"not in this job: {line}"))
    given = render.resources(request.images, kind)
    wanted = render.JobRequest(
        kind,
        request.keyword,
        request.release,
        given,
        _says(board, given.get(WHOLE, ""), hear) if kind is JobKind.NATIVE else {},
        request.device_type,
        request.tags,
        request.priority,
    )
    return render.render(board, chosen, wanted)


def follow(request: Follow, hear: Hear) -> Judged:
    """Wait for the end of a job and judge it; raises LabError when the time is over."""

    def tell(job: LavaJob) -> None:
        hear(JobState(job=job.id, state=job.state, device=job.device))

    server = connect(request.identity)
    return judge(server, server.wait(request.job, request.timeout_s, tell), request.board)


def judge(server: LavaServer, job: LavaJob, board: str = "") -> Judged:
    """Compare the cases that a finished job reported with those that it should have: LAVA calls a job
    Complete even when they failed. Raises UsageError for a job that evmperf did not make.
    """
    header = _header(job)
    expected: list[str] = []
    if header["kind"] != JobKind.BOOT:
        given = boardfile.named(board or header["board_file"])
        chosen = importing.selection_of(header, given, f"job {job.id}")
        expected = [case_name(benchmark, case) for benchmark, case in chosen.cases]
    reported = {case["name"]: case["result"] for case in server.results(job.id, selection.SUITE)}
    missing = "did not report"
    wrong = [f"{n}: {reported.get(n, missing)}" for n in expected if reported.get(n) != "pass"]
    passed = f"{len(expected) - len(wrong)} of {len(expected)} cases passed"
    if job.health != "Complete":
        failure = _failure(server, job)
        why = f"{failure} ({failure.kind})" if failure else "LAVA gives no reason"
        status = of_kind(failure.kind) if failure else ExitStatus.LAB_BROKEN
        last = f"is {job.health}: {why}; {passed}"
    elif header["kind"] == JobKind.BOOT:
        status = ExitStatus.OK
        last = f"is complete; its boot times are in its log: read them with `evmperf lava import {job.id}`"
    else:
        status = ExitStatus.FAILED if wrong else ExitStatus.OK
        last = f"is complete: {passed}"
    return Judged(status=status, lines=(*wrong, f"job {job.id} {last}"))


def read(request: Import, _: Hear) -> Imported:
    """Read a job into the spool; one that was read before is left alone. Raises UsageError."""
    path = Path(request.job)
    if path.is_file():
        try:
            check_size(str(path), path.stat().st_size)
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: cannot be read: {error}") from None
        header = importing.header_of(joblog.parse(text, str(path)), str(path))
        source = importing.LogSource(str(path), kind=request.run_kind, facts=request.facts)
        return _read(text, header, source, request)
    number = job_number(request.job)
    server = connect(request.identity)
    job = server.job(number)
    if not job.finished:
        raise UsageError(f"job {number} is still {job.state}: wait for it with `evmperf lava wait {number}`")
    defined = _header(job)
    source = importing.LogSource(
        f"job {job.id}", job.id, server.url, job.device, request.run_kind, request.facts
    )
    text = "" if defined["kind"] == JobKind.HOST else server.log(job.id)
    return _read(text, defined, source, request)


def cancel(request: Cancel, _: Hear) -> Done:
    """Cancel a job."""
    connect(request.identity).cancel(request.job)
    return Done()


def _says(board: Board, url: str, hear: Hear) -> dict[str, str]:
    """What an image says of itself, which is fetched for that; nothing for none."""
    if not url:
        return {}
    given = url.removeprefix("file://")
    if given != url and not Path(given).is_file():
        hear(Remark(sentence=f"{given} is not on this machine: the booted system is not compared with it"))
        return {}
    image = open_image(given, board)
    says = image.identity
    words = {
        "name": image.name,
        "sha256": image.hashes.file,
        "uboot": says.uboot,
        "kernel": says.kernel,
        "version": says.kernel_version,
        "release": says.release,
        "machine": says.machine,
    }
    return {key: value for key, value in words.items() if value}


def _read(text: str, header: dict[str, str], source: importing.LogSource, request: Import) -> Imported:
    if header["kind"] == JobKind.HOST:
        return Imported(name=source.name, new=False)
    board = boardfile.named(request.board or header["board_file"])
    run, new = importing.read(text, header, source, board, Path(request.results))
    folder, status = Path(request.results, run.id), ExitStatus(run.exit_status or 0)
    return Imported(name=source.name, folder=str(folder), status=status, outcome=run.outcome, new=new)


def _header(job: LavaJob) -> dict[str, str]:
    header = render.definition_header(job.definition)
    if header is None:
        raise UsageError(f"job {job.id} was not made by evmperf: its metadata names no benchmarks")
    return header


def _failure(server: LavaServer, job: LavaJob) -> EvmperfError | None:
    if job.health == "Canceled":
        return LabError(joblog.CANCELLED)  # perhaps before it had a log
    try:
        return joblog.failure(joblog.parse(server.log(job.id), f"job {job.id}"))
    except LabError as error:
        return error
