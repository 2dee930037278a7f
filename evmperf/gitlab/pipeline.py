"""The nightly child pipeline: one job per board, then verdicts, the guide and Pages.

The YAML only calls evmperf's commands. Format: GitLab's keyword reference for .gitlab-ci.yml.
"""

import enum
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from evmperf.benchmarks import catalogue
from evmperf.boards import board as boards
from evmperf.boards import images
from evmperf.boards.board import Board
from evmperf.measure import boardfile
from evmperf.model import repeats
from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus

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


@dataclass(frozen=True)
class PipelinePlan:
    """What a night measures. `boards` are board files; an empty string means the default. With
    `push` the results go to InfluxDB; the runners need its variables. `images` are words:
    [BOARD=]IMAGE, or, over native LAVA jobs, parts to boot: ROLE=URL (see `boards.images`).
    """

    boards: tuple[Board, ...]
    over: Over
    benchmarks: str = ""
    profile: str = ""
    release: str = ""
    images: tuple[str, ...] = ()
    against: str = "last:30"
    confirm: str = ""
    """Time for checking worse figures again, "" for none."""
    runner_tag: str = "evmperf"
    push: bool = False
    repeat: str = ""


def chosen(names: Sequence[str]) -> tuple[Board, ...]:
    """The boards of these names, or all real ones; raises UsageError for an unknown one."""
    if names:
        return tuple(boardfile.named(name) for name in names)
    known = map(catalogue.board, boards.files().values())
    return tuple(board for board in known if not board.is_virtual)


def render(plan: PipelinePlan) -> str:
    """The child pipeline as YAML; raises UsageError for an invalid plan."""
    if plan.repeat:
        repeats.parse(plan.repeat)
        if plan.over is not Over.LABGRID:
            raise UsageError(f"--repeat is for jobs over {Over.LABGRID}: LAVA jobs measure once")
    if not plan.boards:
        raise UsageError("no boards: name some with --boards, or add board files to env/")
    if plan.confirm and plan.over is not Over.LABGRID:
        raise UsageError("--confirm needs --over labgrid: an A/B installs images")
    seconds(plan.confirm)
    pipeline: dict[str, Any] = {
        "stages": ["measure", "judge", "report"],
        "default": {
            "tags": [plan.runner_tag],
            "before_script": ["make environment"],
            "cache": _CACHE,
            # The next scheduled night replaces a stopped one.
            "interruptible": False,
        },
    }
    stems = [board.file.stem for board in plan.boards]
    given = _images(plan, stems)
    for board in plan.boards:
        pipeline[f"measure {board.file.stem}"] = _measure(plan, board, given)
    for board in plan.boards:
        pipeline[f"judge {board.file.stem}"] = _judge(plan, board)
    pipeline["pages"] = _pages(plan, stems)
    return yaml.safe_dump(pipeline, sort_keys=False, width=1000)


def _images(plan: PipelinePlan, stems: Sequence[str]) -> dict[str, list[str]]:
    """The words after `--image`, by board."""
    if plan.over is Over.LAVA_NATIVE and any(images.role(word)[0] in images.PARTS for word in plan.images):
        # Kernel, device tree and other parts: every board boots all of them.
        return {stem: list(plan.images) for stem in stems}
    return {stem: [image] for stem, image in images.by_board(plan.images, stems).items()}


def _name(board: Board) -> str:
    """The board file for the job: its name in `env/`, or its path elsewhere."""
    return board.file_name if board.file.parent == boards.ENV_DIR else str(board.file.absolute())


def _measure(plan: PipelinePlan, board: Board, given: Mapping[str, list[str]]) -> dict[str, Any]:
    stem = board.file.stem
    job: dict[str, Any] = {
        "stage": "measure",
        "script": [_command(plan, board, given.get(stem, ()))],
        "resource_group": f"board-{stem}",
        "timeout": "24h",
        "artifacts": {
            "when": "always",
            "expire_in": _WEEK,
            "expose_as": f"Results of {stem}",
            "paths": [f"{_RESULTS}/"],
            "reports": {"junit": f"{_RESULTS}/*/junit.xml"},
        },
    }
    return job | _place(plan, board)


def _place(plan: PipelinePlan, board: Board) -> dict[str, Any]:
    """The part of a job that measures; its session holds the place (docs/lab-at-scale.md)."""
    if plan.over is Over.LABGRID and not board.is_virtual:
        return {"variables": {"LG_PLACE": board.file.stem}}
    return {}


def _command(plan: PipelinePlan, board: Board, given: Sequence[str]) -> str:
    selection = ["-k", plan.benchmarks] if plan.benchmarks else []
    profile = ["--profile", plan.profile] if plan.profile else []
    release = ["--release", plan.release] if plan.release else []
    image = [word for one in given for word in ("--image", one)]
    if plan.over is Over.LABGRID:
        words = [".venv/bin/pytest", "--lg-env", _name(board), "--run-kind", "nightly"]
        words += [f"--results={_RESULTS}", "--wait", _WAIT, *selection, *profile, *release]
        words += [f"--repeat={plan.repeat}"] if plan.repeat else []
        return shlex.join([*words, *image])
    kind = "host" if plan.over is Over.LAVA_HOST else "native"
    words = [_EVMPERF, "lava", "submit", _name(board), "--kind", kind, "--wait", "--import"]
    words += ["--results", _RESULTS, *selection, *profile, *release]
    return shlex.join([*words, *image])


def _judge(plan: PipelinePlan, board: Board) -> dict[str, Any]:
    stem = board.file.stem
    verdict = f"verdict-{stem}"
    # Only tonight's run is here; earlier nights are in the lab's store or the database.
    check = [_EVMPERF, "check", "last", "--results", _RESULTS, "--against", plan.against]
    if plan.push:
        check += ["--from", "influx"]
    if plan.confirm:
        check += ["--confirm", plan.confirm, "--board", _name(board), "--wait", _WAIT]
    for kind, suffix in (("junit", "xml"), ("markdown", "md"), ("openmetrics", "txt")):
        check += [f"--{kind}", f"{verdict}.{suffix}"]
    job: dict[str, Any] = {
        "stage": "judge",
        "when": "always",
        "needs": [{"job": f"measure {stem}", "artifacts": True}],
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
    if plan.confirm:
        job |= {"resource_group": f"board-{stem}", "timeout": "24h", **_place(plan, board)}
    return job


def _pages(plan: PipelinePlan, stems: Sequence[str]) -> dict[str, Any]:
    guide = [_EVMPERF, "guide", "--release", plan.release or "newest", "--from", _RESULTS]
    guide += ["-o", "build/guide/index.rst", "--html", "public/guide"]
    # Tonight's runs with their reports; earlier runs link to their jobs.
    site = [_EVMPERF, "site", "-o", "public", "--results", _RESULTS]
    return {
        "stage": "report",
        "when": "always",
        "needs": [{"job": f"measure {stem}", "artifacts": True} for stem in stems],
        "script": [
            # Without a guide there is still a site.
            f"{shlex.join(guide)} || failed=$?",
            *([f"{_EVMPERF} push"] if plan.push else []),
            shlex.join([*site, "--reports", "copied"]),
            "exit ${failed:-0}",
        ],
        "artifacts": {"paths": ["public"], "expire_in": _WEEK},
    }
