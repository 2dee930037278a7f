"""A night's plan as GitLab's child pipeline: one job per board, then verdicts, the guide and Pages.

The YAML only calls evmperf's commands. Format: GitLab's keyword reference for .gitlab-ci.yml.
"""

import enum
import functools
import json
import re
import shlex
from collections.abc import Iterable
from pathlib import Path

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.commands.night.plan import Job, NightPlan
from evmperf.measure import boardfile
from evmperf.model.concealing import conceal
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.publish.pages import look

_EVMPERF = ".venv/bin/evmperf"
_RESULTS = "results"
_WAIT = "6h"
"""How long a night's job waits for a busy board."""
_REFERENCE = re.compile(r"\$(?:\w+|\{\w+\})")
"""To a variable of GitLab's CI."""


class Over(enum.StrEnum):
    """How jobs reach the boards."""

    LABGRID = "labgrid"
    """The runner measures through Labgrid places with the board files' names."""
    LAVA_HOST = "lava-host"
    """A LAVA job on the lab's Labgrid host."""
    LAVA_NATIVE = "lava-native"
    """A LAVA job that boots the board, for the benchmarks that such a job can run."""


_NOT_HERE = ("uses", "limit")
"""Words of a job that need the scheduler of `evmperf night`."""


def real_boards() -> list[str]:
    """The names of the real boards with a file in `env/`."""
    every_board = map(catalogue.board, boards.files().values())
    return [board.file_name for board in every_board if not board.is_virtual]


def render(plan: NightPlan, over: Over = Over.LABGRID, runner_tag: str = "evmperf") -> str:
    """The child pipeline as YAML, for the repository in the current folder; raises UsageError for a plan that
    GitLab's jobs cannot carry out, and for a password in it. With `push` of the plan the results go to
    InfluxDB, whose variables the runners need.
    """
    for job in plan.boards:
        if over is not Over.LABGRID and (job.repeat or plan.repeat):
            raise UsageError(f"--repeat is for jobs over {Over.LABGRID}: LAVA jobs measure once")
        for word in _NOT_HERE:
            if getattr(job, word):
                raise UsageError(f"{job.name}: GitLab's jobs have no {word!r}: use `evmperf night`")
    if plan.confirm and over is not Over.LABGRID:
        raise UsageError("--confirm needs --over labgrid: an A/B installs images")
    return look.render(
        "commands/gitlab/pipeline.yml.j2",
        plan=plan,
        jobs=[_job(plan, job, boardfile.named(job.board), over) for job in plan.boards],
        report=_report(plan),
        environment=_environment(plan),
        amber=[int(ExitStatus.NOTHING), int(ExitStatus.UNDECIDED)],
        results=_RESULTS,
        evmperf=_EVMPERF,
        runner_tag=runner_tag,
        text=functools.partial(json.dumps, ensure_ascii=False),
    )


def _environment(plan: NightPlan) -> list[str]:
    """How a job installs evmperf where no Makefile of evmperf does."""
    makefile = Path("Makefile")
    if makefile.is_file() and "\nenvironment:" in makefile.read_text("utf-8", "replace"):
        return []
    named = ["-r", "requirements.txt"] if Path("requirements.txt").is_file() else []
    packages = named or ["evmperf[guide]" if plan.guide else "evmperf"]
    return ["python3 -m venv .venv", _line([".venv/bin/pip", "install", "--quiet", *packages])]


def _line(words: Iterable[str]) -> str:
    """Words as a line of the shell, with references to CI's variables in place of secrets; raises UsageError
    for a secret.
    """
    every = list(words)
    found: list[str] = []
    conceal(" ".join(every), lambda secret: found.append(secret) or "")  # type: ignore[func-returns-value]
    for secret in found:
        if not _REFERENCE.fullmatch(secret):
            word = next((word for word in every if secret in word), "the plan")
            raise UsageError(
                f"{word}: the pipeline's file would show the password; put it into a masked CI variable and "
                f"write $NAME in its place"
            )
    references = re.compile(f"({'|'.join(map(re.escape, found)) or '(?!)'})")
    return " ".join(
        "".join(
            f'"{piece}"' if piece in found else shlex.quote(piece)
            for piece in references.split(word)
            if piece
        )
        or "''"
        for word in every
    )


def _job(plan: NightPlan, job: Job, board: Board, over: Over) -> dict[str, str]:
    """The jobs of one board: commands that measure and judge, what they hold meanwhile, and the verdict's
    files without their suffixes. `place` is Labgrid's, which the session holds (docs/lab-at-scale.md).
    """
    place = (job.place or board.file.stem) if over is Over.LABGRID else ""
    return {
        "name": job.name,
        "held": place or job.name,
        "place": "" if board.is_virtual else place,
        "measure": _measure(plan, job, board, over),
        "judge": _judge(plan, job, board),
        "verdict": f"verdict-{job.name}",
    }


def _name(board: Board) -> str:
    """The board file for the job: its name in `env/`, or its path in the repository; raises UsageError."""
    if board.file.parent == boards.ENV_DIR:
        return board.file_name
    file, here = board.file.resolve(), Path.cwd().resolve()
    if file.is_relative_to(here):
        return str(file.relative_to(here))
    if board.file.is_absolute():
        return str(board.file)  # on each runner's host, as it was given
    raise UsageError(
        f"{board.file}: is outside the repository, which is all that a job has: put it into env/"
    )


def _measure(plan: NightPlan, job: Job, board: Board, over: Over) -> str:
    if over is Over.LABGRID:
        words = [".venv/bin/pytest", "--lg-env", _name(board), f"--results={_RESULTS}"]
        return _line([*words, "--wait", _WAIT, *plan.words(job)])
    kind = "host" if over is Over.LAVA_HOST else "native"
    words = [_EVMPERF, "lava", "submit", _name(board), "--kind", kind, "--wait", "--import"]
    return _line([*words, "--results", _RESULTS, *plan.words(job, lava=True)])


def _judge(plan: NightPlan, job: Job, board: Board) -> str:
    # Only tonight's run is here; earlier nights are in the lab's store or the database.
    check = [_EVMPERF, "check", "last", "--results", _RESULTS, "--against", plan.against]
    if source := plan.history or ("influx" if plan.push else ""):
        check += ["--from", source]
    if plan.confirm:
        check += ["--confirm", plan.confirm, "--board", _name(board), "--wait", _WAIT]
    for kind, suffix in (("junit", "xml"), ("markdown", "md"), ("openmetrics", "txt")):
        check += [f"--{kind}", f"verdict-{job.name}.{suffix}"]
    return _line(check)


def _report(plan: NightPlan) -> list[str]:
    """The commands of the last job; without a guide there is still a site."""
    guide = [_EVMPERF, "guide", "--release", plan.release or "newest", "--from", _RESULTS]
    guide += ["-o", "build/guide/index.rst", "--html", "public/guide"]
    # Tonight's runs with their reports; earlier runs link to their jobs.
    site = [_EVMPERF, "site", "-o", "public", "--results", _RESULTS, "--reports", "copied"]
    return [
        *([f"{_line(guide)} || failed=$?"] if plan.guide else []),
        *([f"{_EVMPERF} push"] if plan.push else []),
        *([_line(site)] if plan.site else []),
        "exit ${failed:-0}",
    ]
