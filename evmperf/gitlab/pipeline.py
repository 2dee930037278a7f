"""A night's plan as GitLab's child pipeline: one job per board, then verdicts, the guide and Pages.

The YAML only calls evmperf's commands. Format: GitLab's keyword reference for .gitlab-ci.yml.
"""

import enum
import shlex
from typing import Any

import yaml

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.measure import boardfile
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.night.plan import Job, NightPlan

_EVMPERF = ".venv/bin/evmperf"
_RESULTS = "results"
_WEEK = "1 week"
_WAIT = "6h"
"""How long a night's job waits for a busy board."""


_CACHE = {
    "key": {"files": ["requirements.txt", "scripts/venv"], "prefix": "venv"},
    "paths": [".venv/"],
    # An artifact of the parent's job that planned the night.
    "policy": "pull",
}
"""The cache of the Python environment, which .gitlab-ci.yml fills."""


class Over(enum.StrEnum):
    """How jobs reach the boards."""

    LABGRID = "labgrid"
    """The runner measures through Labgrid places with the board files' names."""
    LAVA_HOST = "lava-host"
    """A LAVA job on the lab's Labgrid host."""
    LAVA_NATIVE = "lava-native"
    """A LAVA job that boots the board, for the benchmarks that such a job can run."""


_NOT_HERE = ("any", "uses", "limit")
"""Words of a job that need the scheduler of `evmperf night`."""


def real_boards() -> list[str]:
    """The names of the real boards with a file in `env/`."""
    known = map(catalogue.board, boards.files().values())
    return [board.file_name for board in known if not board.is_virtual]


def render(plan: NightPlan, over: Over = Over.LABGRID, runner_tag: str = "evmperf") -> str:
    """The child pipeline as YAML; raises UsageError for a plan that GitLab's jobs cannot carry out.

    With `push` of the plan the results go to InfluxDB; the runners need its variables.
    """
    for job in plan.boards:
        if over is not Over.LABGRID and (job.repeat or plan.repeat):
            raise UsageError(f"--repeat is for jobs over {Over.LABGRID}: LAVA jobs measure once")
        for word in _NOT_HERE:
            if getattr(job, word):
                raise UsageError(f"{job.name}: GitLab's jobs have no {word!r}: use `evmperf night`")
    if plan.confirm and over is not Over.LABGRID:
        raise UsageError("--confirm needs --over labgrid: an A/B installs images")
    pipeline: dict[str, Any] = {
        "stages": ["measure", "judge", "report"],
        "default": {
            "tags": [runner_tag],
            "before_script": ["make environment"],
            "cache": _CACHE,
            # The next scheduled night replaces a stopped one.
            "interruptible": False,
        },
    }
    placed = [(job, boardfile.named(job.board)) for job in plan.boards]
    for job, board in placed:
        pipeline[f"measure {job.name}"] = _measure(plan, job, board, over)
    for job, board in placed:
        pipeline[f"judge {job.name}"] = _judge(plan, job, board)
    pipeline["pages"] = _pages(plan)
    return yaml.safe_dump(pipeline, sort_keys=False, width=1000)


def _name(board: Board) -> str:
    """The board file for the job: its name in `env/`, or its path elsewhere."""
    return board.file_name if board.file.parent == boards.ENV_DIR else str(board.file.absolute())


def _measure(plan: NightPlan, job: Job, board: Board, over: Over) -> dict[str, Any]:
    reached = _place(job, board) if over is Over.LABGRID else {"resource_group": f"board-{job.name}"}
    return reached | {
        "stage": "measure",
        "script": [_command(plan, job, board, over)],
        "timeout": "24h",
        "artifacts": {
            "when": "always",
            "expire_in": _WEEK,
            "expose_as": f"Results of {job.name}",
            "paths": [f"{_RESULTS}/"],
            "reports": {"junit": f"{_RESULTS}/*/junit.xml"},
        },
    }


def _place(job: Job, board: Board) -> dict[str, Any]:
    """The part of a job that measures; its session holds the place (docs/lab-at-scale.md)."""
    place = job.place or board.file.stem
    return {"resource_group": f"board-{place}"} | (
        {} if board.is_virtual else {"variables": {"LG_PLACE": place}}
    )


def _command(plan: NightPlan, job: Job, board: Board, over: Over) -> str:
    if over is Over.LABGRID:
        words = [".venv/bin/pytest", "--lg-env", _name(board), f"--results={_RESULTS}"]
        return shlex.join([*words, "--wait", plan.wait or _WAIT, *plan.words(job)])
    kind = "host" if over is Over.LAVA_HOST else "native"
    words = [_EVMPERF, "lava", "submit", _name(board), "--kind", kind, "--wait", "--import"]
    return shlex.join([*words, "--results", _RESULTS, *plan.words(job, lava=True)])


def _judge(plan: NightPlan, job: Job, board: Board) -> dict[str, Any]:
    verdict = f"verdict-{job.name}"
    # Only tonight's run is here; earlier nights are in the lab's store or the database.
    check = [_EVMPERF, "check", "last", "--results", _RESULTS, "--against", plan.against]
    if source := plan.history or ("influx" if plan.push else ""):
        check += ["--from", source]
    if plan.confirm:
        check += ["--confirm", plan.confirm, "--board", _name(board), "--wait", plan.wait or _WAIT]
    for kind, suffix in (("junit", "xml"), ("markdown", "md"), ("openmetrics", "txt")):
        check += [f"--{kind}", f"{verdict}.{suffix}"]
    held = _place(job, board) | {"timeout": "24h"} if plan.confirm else {}
    return held | {
        "stage": "judge",
        "when": "always",
        "needs": [{"job": f"measure {job.name}", "artifacts": True}],
        "script": [shlex.join(check)],
        "after_script": [f"{_EVMPERF} note {verdict}.md"],
        # Nothing to compare with, as on a board's first night, or noise hides the answer: amber.
        "allow_failure": {"exit_codes": [int(ExitStatus.NOTHING), int(ExitStatus.UNDECIDED)]},
        "artifacts": {
            "when": "always",
            "expire_in": _WEEK,
            "paths": [f"{verdict}.*", f"{_RESULTS}/*/report.html"],
            "reports": {"junit": f"{verdict}.xml", "metrics": f"{verdict}.txt"},
        },
    }


def _pages(plan: NightPlan) -> dict[str, Any]:
    guide = [_EVMPERF, "guide", "--release", plan.release or "newest", "--from", _RESULTS]
    guide += ["-o", "build/guide/index.rst", "--html", "public/guide"]
    # Tonight's runs with their reports; earlier runs link to their jobs.
    site = [_EVMPERF, "site", "-o", "public", "--results", _RESULTS]
    return {
        "stage": "report",
        "when": "always",
        "needs": [{"job": f"measure {job.name}", "artifacts": True} for job in plan.boards],
        "script": [
            # Without a guide there is still a site.
            *([f"{shlex.join(guide)} || failed=$?"] if plan.guide else []),
            *([f"{_EVMPERF} push"] if plan.push else []),
            *([shlex.join([*site, "--reports", "copied"])] if plan.site else []),
            "exit ${failed:-0}",
        ],
        "artifacts": {"paths": ["public"], "expire_in": _WEEK},
    }
