"""Reading a finished job's log into the spool, through the same runner, steps and parsers."""

import contextlib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from evmperf.benchmarks import catalogue, control
from evmperf.boards.board import Board
from evmperf.commands.lava import joblog, replay
from evmperf.commands.lava.render import HEADER_SCHEMA, JobConsole, cycles
from evmperf.commands.lava.selection import JobKind, Selection, steps_of
from evmperf.lab.provision import running
from evmperf.lab.provision.identity import SystemIdentity
from evmperf.measure import provenance
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool, new_folder, read_run, results_in
from evmperf.model import ended
from evmperf.model.ended import Ending
from evmperf.model.errors import LabError, RefusedOutput, UsageError
from evmperf.model.facts import Facts
from evmperf.model.run import Run


@dataclass(frozen=True)
class LogSource:
    """A log's origin: `name` for messages, the job's `number` (0: a file), `kind` and `facts`."""

    name: str
    number: int = 0
    server: str = ""
    device: str = ""
    kind: str = "lava"
    facts: Mapping[str, str] = field(default_factory=dict)


def read(
    entries: list[joblog.LogEntry], header: Mapping[str, str], source: LogSource, board: Board, results: Path
) -> tuple[Run, bool]:
    """Put a job's log into the spool, whole or not at all, unless it is there; returns its run, and
    whether that is new. Raises UsageError for a cut log or another catalogue, LabError for the disk.
    """
    selection = selection_of(header, board, source.name)
    if not source.number and joblog.job_result(entries) is None:
        raise UsageError(
            f"{source.name}: the log is cut: it ends before the job did; download it again, or "
            f"give the job's number"
        )
    run = _run(header, entries, source, board)
    if (results / run.id / "run.json").is_file():
        return read_run(results / run.id), False
    blocks, failure = joblog.read_blocks(entries), joblog.failure(entries)
    for benchmark, case in selection.cases if header.get("kind") == JobKind.NATIVE else ():
        for step in steps_of(benchmark, board, case, selection.profile):
            block = blocks.get(benchmark.label(case, step))
            if block and block.checksum != joblog.checksum(step.command):
                raise UsageError(
                    f"{source.name}: {block.label} ran another command than this version of evmperf "
                    f"would: import the log with the version that made the job "
                    f"({header.get('evmperf_revision', 'unknown')}) and its board file"
                )
    with new_folder(results) as scratch:
        try:
            _check_image(header, entries, blocks)
        except LabError as error:
            blocks, failure = {}, error
        arguments = [words for _, _, words in cycles(selection)]
        boots = replay.find_boots(entries, JobConsole(board), arguments)
        job = replay.LoggedJob(board, entries[0].time_ns, *boots, blocks, failure)
        _replay(job, selection, Spool(scratch, run))
        (scratch / run.id).rename(results / run.id)
    return run, True


def _check_image(
    header: Mapping[str, str], entries: list[joblog.LogEntry], blocks: Mapping[str, joblog.MarkedBlock]
) -> None:
    """Raise LabError if the board does not run the image that it was given, by U-Boot's banner and the facts
    that it said.
    """
    files: dict[str, str] = {}
    with contextlib.suppress(KeyError, RefusedOutput):
        files = replay.decoded(blocks[provenance.LABEL]).files
    facts, loader = provenance.parse(files), running.banner([entry.text for entry in entries])
    says = _system(*(header.get(f"image_{name}", "") for name in ("uboot", "kernel", "version", "release")))
    running.check(says, _system(loader, facts.kernel, facts.kernel_version, provenance.release(facts, files)))


def _system(uboot: str, kernel: str, version: str, release: str) -> SystemIdentity:
    return SystemIdentity(uboot=uboot, kernel=kernel, kernel_version=version, build_id=release)


def selection_of(header: Mapping[str, str], board: Board, name: str) -> Selection:
    """The benchmarks of a job; raises UsageError for a job of a later evmperf or another kind."""
    if header.get("schema") != HEADER_SCHEMA:
        raise UsageError(
            f"{name}: the job has schema {header.get('schema')}, this version of evmperf reads "
            f"{HEADER_SCHEMA}: use the version that made the job ({header.get('evmperf')})"
        )
    chosen = tuple(catalogue.benchmark(word) for word in header["benchmarks"].split(","))
    return Selection(board, header["profile"], chosen, ())


def _run(header: Mapping[str, str], entries: list[joblog.LogEntry], source: LogSource, board: Board) -> Run:
    """The run of a job: its id is the same whenever and wherever the job is imported."""
    begin = entries[0].time_ns
    # Of the log alone, so that a job is the same run by its number and by a copy of its log.
    digits = hashlib.sha256(f"{board.name} {begin}".encode()).hexdigest()[:4]
    moment = datetime.fromtimestamp(begin / 1e9, UTC)
    # What the job says of the image that it put on the board.
    image = {k.removeprefix("image_"): v for k, v in header.items() if k.startswith("image_")}
    job = {"number": source.number, "server": source.server, "device": source.device}
    return Run(
        id=f"{board.name}-{moment:%Y%m%dT%H%M%SZ}-{digits}",
        board=board.name,
        profile=header["profile"],
        kind=source.kind,
        lab=source.server,
        place=source.device,
        started_ns=begin,
        ended_ns=entries[-1].time_ns,
        release=header.get("release", ""),
        facts=Facts.from_dict(
            {
                **source.facts,
                "board_file": board.file_name,
                "virtual": board.is_virtual,
                **provenance.project().to_dict(),
                "lava_job": {key: value for key, value in job.items() if value},
                "lava_job_made_by": header.get("evmperf_revision") or header.get("evmperf", ""),
                "provisioned": image,
            }
        ),
    )


def _replay(job: replay.LoggedJob, selection: Selection, spool: Spool) -> None:
    run = spool.run
    runner = Runner(
        job,
        spool,
        selection.profile,
        selection.tools,
        run.release,
        steps=job,
        clock=job,
        looks=control.NAME in job.blocks,  # not in those of earlier versions
        late_s=replay.STAMP_NS / 1e9,
    )
    cut = None
    try:
        for benchmark, case in selection.cases:
            runner.measure(benchmark, case)
    except LabError as error:
        if error is not job.failure:
            raise  # not the job's lab but ours: the disk
        cut = (Ending.LAB, "The lab is broken", str(error))
    measured = [one for one in results_in(spool.folder) if one.benchmark != control.NAME]
    end = ended.of(run.board, measured, len(selection.cases), cut)
    run.exit_status, run.ending, run.outcome = end.status, end.ending, end.sentence
    spool.save()
