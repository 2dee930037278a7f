"""LAVA jobs: rendered, submitted, judged and read."""

from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from msgspec.structs import replace

from evmperf.boards.board import Board
from evmperf.commands.lava import importing, joblog, render, selection
from evmperf.commands.lava.render import JobRequest
from evmperf.commands.lava.selection import JobKind, case_name
from evmperf.commands.lava.server import LavaJob, LavaServer, job_number
from evmperf.lab.provision.cache import open_image
from evmperf.measure import boardfile
from evmperf.model import inputs, limits
from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.run import Run


def definition(
    board_file: str,
    request: JobRequest,
    profile: str = "",
    tell: Callable[[str], None] = lambda sentence: None,
) -> str:
    """The job, checked as far as it can be without a server; raises UsageError."""
    board = boardfile.named(board_file)
    chosen = selection.select(board, request.kind, profile or board.options.board.profile, request.keyword)
    for line in chosen.refused if request.keyword else ():
        tell(f"not in this job: {line}")
    if request.image and request.kind is JobKind.BOOT:
        raise UsageError("--image is for native and host jobs: a boot job boots the installed system")
    says = _says(board, request.image, tell) if request.kind is JobKind.NATIVE else {}
    return render.render(board, chosen, replace(request, says=says))


def judge(server: LavaServer, job: LavaJob, board: str = "") -> ExitStatus:
    """Compare the cases that a finished job reported with those that it should have, and print what is wrong:
    LAVA calls a job Complete even when they failed. Raises UsageError for a job that evmperf did not make.
    """
    header = _header(job)
    expected: list[str] = []
    if header["kind"] != JobKind.BOOT:
        given = boardfile.named(board or header["board_file"])
        chosen = importing.selection_of(header, given, f"job {job.id}")
        expected = [case_name(benchmark, case) for benchmark, case in chosen.cases]
    failure: EvmperfError | None
    try:
        entries = joblog.parse(server.log(job.id), f"job {job.id}")
        failure = joblog.failure(entries)
    except LabError as error:  # perhaps it never ran
        if job.health == "Complete":
            raise
        entries, failure = [], error
    if job.health == "Canceled":
        failure = LabError(joblog.CANCELLED)
    reported = joblog.reported(entries)
    missing = "did not report"
    wrong = [f"{n}: {reported.get(n, missing)}" for n in expected if reported.get(n) != "pass"]
    passed = f"{len(expected) - len(wrong)} of {len(expected)} cases passed"
    if job.health != "Complete":
        why = f"{failure} ({failure.kind})" if failure else "LAVA gives no reason"
        status = of_kind(failure.kind) if failure else ExitStatus.LAB_BROKEN
        last = f"is {job.health}: {why}; {passed}"
    elif header["kind"] == JobKind.BOOT:
        status = ExitStatus.OK
        last = f"is complete; its boot times are in its log: read them with `evmperf lava import {job.id}`"
    else:
        status = ExitStatus.FAILED if wrong else ExitStatus.OK
        last = f"is complete: {passed}"
    print(*wrong, f"job {job.id} {last}", sep="\n")
    return status


def read(
    server: Callable[[], LavaServer],
    job: str,
    results: Path,
    *,
    board: str,
    kind: str,
    facts: Mapping[str, str],
) -> tuple[str, Run | None, bool]:
    """Read a finished job (a number, a page, or the file of its log) into the spool below `results`; its
    name, its run (None for one that keeps its results), and whether that is new. `facts` are added to the
    run's; without `board` it is that of the job. Raises UsageError.
    """
    path = Path(job)
    if path.is_file():
        entries = joblog.parse(inputs.text(path, limits.LAVA_LOG_BYTES), str(path))
        header = joblog.read_header(entries, str(path))
        source = importing.LogSource(str(path), kind=kind, facts=facts)
    else:
        number, at = job_number(job), server()
        done = at.job(number)
        if not done.finished:
            raise UsageError(
                f"job {number} is still {done.state}: wait for it with `evmperf lava wait {number}`"
            )
        header = _header(done)
        source = importing.LogSource(f"job {done.id}", done.id, at.url, done.actual_device or "", kind, facts)
        entries = [] if header["kind"] == JobKind.HOST else joblog.parse(at.log(number), source.name)
    if header["kind"] == JobKind.HOST:
        return source.name, None, False
    given = boardfile.named(board or header["board_file"])
    return source.name, *importing.read(entries, header, source, given, results)


def _says(board: Board, url: str, tell: Callable[[str], None]) -> dict[str, str]:
    """What an image says of itself, which is fetched for that; nothing for none."""
    if not url:
        return {}
    if urlsplit(url).scheme not in ("http", "https", "file"):
        raise UsageError(f"--image {url}: LAVA fetches http://, https:// and file:// only")
    given = url.removeprefix("file://")
    if given != url and not Path(given).is_file():
        tell(f"{given} is not on this machine: the booted system is not compared with it")
        return {}
    image = open_image(given, board)
    says = image.identity
    words = {
        "name": image.name,
        "sha256": image.sha256,
        "uboot": says.uboot,
        "kernel": says.kernel,
        "version": says.kernel_version,
        "release": says.release,
        "machine": says.machine,
    }
    return {key: value for key, value in words.items() if value}


def _header(job: LavaJob) -> dict[str, str]:
    """What a job says about itself; raises UsageError for one that is not of evmperf."""
    try:
        definition = yaml.safe_load(job.original_definition or "")
        return joblog.decode_header(definition["metadata"][render.METADATA])
    except (yaml.YAMLError, KeyError, TypeError, ValueError, AttributeError, RecursionError):
        raise UsageError(f"job {job.id} was not made by evmperf: its metadata names no benchmarks") from None
