"""What is made of runs for others: a guide, the site, the database's points."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from evmperf import site as sites
from evmperf.app import sources
from evmperf.app.requests import Hear, Keep, Produced, Push, WriteGuide, WriteSite
from evmperf.guide import conditions, layout, writer
from evmperf.influx import config as configs
from evmperf.influx.client import Store
from evmperf.influx.push import RunPush
from evmperf.influx.sender import refused_text, waiting
from evmperf.model.replies import Remark
from evmperf.published import dialect
from evmperf.published import releases as gather


def guide(request: WriteGuide, hear: Hear) -> Produced:
    """Write a guide in the project's own layout; raises UsageError for an unknown release."""
    with sources.opened(request.source, samples=False) as source:
        chosen = gather.of_release(gather.stored(source), request.release)
    figures = gather.by_board(chosen)
    release, os = chosen[-1].run.release, chosen[-1].run.os or "Linux"
    plan = layout.own(figures, dialect.of_release(release, os))
    head = writer.Head(release, os, gather.modules(figures))
    Path(request.output).write_text(writer.render(plan, figures, head, writer.Extras()), encoding="utf-8")
    conditions.write(Path(request.output), figures, [entry.run for entry in chosen])
    return Produced(sentence=request.output)


def push(request: Push, hear: Hear) -> Produced:
    """Send what is not in the database yet; raises as `sent` does."""
    lines = []
    for said, problem in sent(Path(request.results)):
        lines.append(said)
        if problem:
            hear(Remark(sentence=problem))
    return Produced(sentence="; ".join(lines) or "nothing to send")


def sent(results: Path, runs: Sequence[Path] = ()) -> Iterator[tuple[str, str]]:
    """Send what is not in the database yet, or these `runs` as a whole; yields for each run what was
    sent and what went wrong ("" for nothing), in sentences. Raises UsageError where no database is
    configured, LabError when it cannot be reached.
    """
    config = configs.required()
    with Store(config) as store:
        for folder in runs or waiting(results, config.key, begun=False):
            pushed = RunPush.of(store, folder, again=bool(runs)).send()
            problems = [refused_text(folder, pushed.refused)]
            more = "; it is still being measured"
            if pushed.complete:
                more = ""
                sources.keep([folder], problems.append)
            yield f"{folder.name}: {pushed.points} points{more}", "; ".join(filter(None, problems))


def site(request: WriteSite, hear: Hear) -> Produced:
    """Write the site; raises UsageError when there are no runs, LabError for the disk."""
    with sources.opened(request.source, Path(request.results)) as source:
        written = sites.write(Path(request.output), source, reports=request.reports)
    for problem in written.problems:
        hear(Remark(sentence=problem))
    return Produced(
        sentence=f"{written.index}: {written.runs} runs of {written.boards} boards on "
        f"{written.pages} pages, the largest {written.largest / 1e6:.2f} MB"
    )


def keep(request: Keep, hear: Hear) -> Produced:
    """Keep runs in the lab's store; those that cannot be kept are remarks."""
    folders = [Path(request.results) / name for name in request.runs]
    new, _ = sources.keep(folders, lambda text: hear(Remark(sentence=text)))
    return Produced(sentence=f"{new} of {len(folders)} runs are new in the lab's store")
