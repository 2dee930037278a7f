"""LAVA jobs: submitted, followed, judged, read and cancelled."""

from collections.abc import Mapping
from pathlib import Path

from evmperf.app.requests import (
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
from evmperf.boards.board import Board
from evmperf.boards.images import WHOLE
from evmperf.lava import images, importing, joblog, render, selection
from evmperf.lava.server import LavaJob, LavaServer, check_size, connect, job_number
from evmperf.lava.verdict import judge
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.replies import Remark
from evmperf.provision.cache import open_image


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
    kind = selection.JobKind(request.kind)
    profile = request.profile or board.options.board.profile
    chosen = selection.select(board, kind, profile, request.keyword)
    for line in chosen.refused if request.keyword else ():
        hear(Remark(sentence=f"not in this job: {line}"))
    given = images.resources(request.images, kind)
    wanted = render.JobRequest(
        kind,
        request.keyword,
        request.release,
        given,
        _says(board, given.get(WHOLE, ""), hear) if kind is selection.JobKind.NATIVE else {},
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
    return _judged(server, server.wait(request.job, request.timeout_s, tell), request.board)


def outcome(request: Follow, _: Hear) -> Judged:
    """Judge a job that has ended; raises UsageError for one that has not."""
    server = connect(request.identity)
    return _judged(server, _finished(server, request.job), request.board)


def read(request: Import, _: Hear) -> Imported:
    """Read a job into the spool; one that was read before is left alone. Raises UsageError."""
    board = boardfile.named(request.board) if request.board else None
    path = Path(request.job)
    if path.is_file():
        try:
            check_size(str(path), path.stat().st_size)
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(f"{path}: cannot be read: {error}") from None
        header = importing.header_of(joblog.parse(text, str(path)), str(path))
        source = importing.LogSource(str(path), kind=request.run_kind, facts=request.facts)
        return _read(text, header, source, board, Path(request.results))
    number = job_number(request.job)
    server = connect(request.identity)
    job = _finished(server, number)
    defined = render.definition_header(job.definition)
    if defined is None:
        raise UsageError(f"job {job.id} was not made by evmperf: its metadata names no benchmarks")
    source = importing.LogSource(
        f"job {job.id}", job.id, server.url, job.device, request.run_kind, request.facts
    )
    text = "" if defined["kind"] == selection.JobKind.HOST else server.log(job.id)
    return _read(text, defined, source, board, Path(request.results))


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


def _read(
    text: str, header: Mapping[str, str], source: importing.LogSource, board: Board | None, results: Path
) -> Imported:
    if header["kind"] == selection.JobKind.HOST:
        return Imported(name=source.name, new=False)
    board = board or boardfile.named(header["board_file"])
    done = importing.read(text, header, source, board, results)
    status = ExitStatus(done.run.exit_status or 0)
    return Imported(
        name=source.name, folder=str(done.folder), status=status, outcome=done.run.outcome, new=done.new
    )


def _judged(server: LavaServer, job: LavaJob, board: str) -> Judged:
    verdict = judge(server, job, boardfile.named(board) if board else None)
    return Judged(status=verdict.exit_status, lines=tuple(verdict.lines))


def _finished(server: LavaServer, number: int) -> LavaJob:
    job = server.job(number)
    if not job.finished:
        raise UsageError(f"job {number} is still {job.state}: wait for it with `evmperf lava wait {number}`")
    return job
