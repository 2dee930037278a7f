"""What a night is to measure, and within which limits: a YAML file, checked word by word.

docs/lab-at-scale.md describes it for people.
"""

from __future__ import annotations

import difflib
import re
import time
from collections.abc import Mapping
from dataclasses import MISSING, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

import yaml

from evmperf.boards import board as boards
from evmperf.boards.images import by_board
from evmperf.keeping.kicks import GRACE_S
from evmperf.keeping.wanted import Wanted, wanted
from evmperf.model import repeats
from evmperf.model.duration import seconds
from evmperf.model.errors import UsageError

_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


@dataclass(frozen=True)
class Job:
    """One board to measure: `board` is its file, and either `place` names its place or `any` gives
    the tags that a place must have. `uses` are shared things with a limit in the plan.
    """

    board: str
    name: str = ""
    place: str = ""
    any: Mapping[str, str] = field(default_factory=dict)
    benchmarks: str = ""
    profile: str = ""
    release: str = ""
    repeat: str = ""
    limit: str = ""
    image: str = ""
    """What is put on the board first, as pytest's --image; "" for what is there."""
    uses: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    lava: str = ""
    """Over LAVA, the kind of its job: native, boot, or host; "" for those that fit."""


@dataclass(frozen=True)
class Plan:
    """A night. Durations are as in 30m, `until` is a time of day (06:30) or a duration.

    `images` are words IMAGE, for all boards, or BOARD=IMAGE for those with the board file BOARD.
    """

    boards: list[Job]
    name: str = ""
    results: str = "results"
    until: str = "12h"
    wait: str = ""
    stagger: str = "2s"
    at_once: int = 0
    limits: Mapping[str, int] = field(default_factory=dict)
    release: str = ""
    repeat: str = ""
    images: list[str] = field(default_factory=list)
    run_kind: str = "nightly"
    give_way: bool = False
    grace: str = f"{GRACE_S:g}s"
    """How long a board that was taken away is left to who did it."""
    against: str = "last:30"
    history: str = ""
    """Where earlier runs are, DIR or influx; "" for the night's own results."""
    confirm: str = ""
    """How long an A/B may check what is worse again, "" for not at all."""
    guide: bool = True
    push: bool = False
    site: bool = True
    health_check: str = "boot_time"
    health_options: list[str] = field(default_factory=list)

    def wanted(self, job: Job) -> Wanted:
        """What to hold for a job that names its board; raises UsageError."""
        file = board_file(job)
        return wanted(file, place=job.place or file.stem)


def read(path: Path) -> Plan:
    """Read and check a plan; raises UsageError that names file and word."""
    try:
        data = yaml.load(path.read_text(encoding="utf-8"), Loader=boards.Loader)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: is not YAML: {str(error).splitlines()[0]}") from None
    known = {"name": path.stem}
    plan: Plan = _build(Plan, {**known, **_mapping(str(path), data)}, str(path))
    if not plan.boards:
        raise UsageError(f"{path}: boards: is empty: there is nothing to measure")
    jobs: list[Job] = []
    for number, entry in enumerate(plan.boards, 1):
        where = f"{path}: boards, number {number}"
        job: Job = _build(Job, _mapping(where, entry), where)
        jobs.append(_check(job, plan, where, {other.name for other in jobs}))
    _check_repeat(plan.repeat, str(path))
    for duration in (plan.wait, plan.stagger, plan.grace, plan.confirm):
        seconds(duration)
    for word, number in plan.limits.items():
        if not isinstance(number, int) or number < 1:
            raise UsageError(f"{path}: limits: {word} must be a number from 1, not {number!r}")
    if plan.at_once < 0:
        raise UsageError(f"{path}: at_once must be a number from 1, not {plan.at_once}")
    end_of(plan, 0)
    stems = list(dict.fromkeys(board_file(job).stem for job in jobs))
    given = by_board(plan.images, stems)
    jobs = [replace(job, image=job.image or given.get(board_file(job).stem, "")) for job in jobs]
    return replace(plan, boards=jobs)


def end_of(plan: Plan, began: float) -> float:
    """When a night that began then (seconds since the epoch) must have ended."""
    clock = _CLOCK.fullmatch(plan.until)
    if not clock:
        return began + seconds(plan.until)
    then = time.localtime(began)
    hour, minute = int(clock[1]), int(clock[2])
    day = then.tm_mday + ((hour, minute) <= (then.tm_hour, then.tm_min))
    return time.mktime((then.tm_year, then.tm_mon, day, hour, minute, 0, 0, 0, -1))


def board_file(job: Job) -> Path:
    """The board file of a job; raises UsageError when there is none."""
    return boards.find(job.board)


def _check(job: Job, plan: Plan, where: str, taken: set[str]) -> Job:
    file = board_file(job)
    boards.load(file)
    if job.place and job.any:
        raise UsageError(f"{where}: say either place or any, not both")
    for thing in job.uses:
        if thing not in plan.limits:
            raise UsageError(f"{where}: uses {thing}, which has no number under limits")
    if job.lava not in ("", "native", "boot", "host"):
        raise UsageError(f"{where}: lava must be native, boot or host, not {job.lava!r}")
    seconds(job.limit)
    _check_repeat(job.repeat, where)
    usual = job.place or "-".join(job.any.values()) or file.stem
    name = job.name or usual
    number = 1
    while name in taken:
        number += 1
        name = f"{job.name or usual}-{number}"
    return replace(job, name=name)


def _check_repeat(text: str, where: str) -> None:
    try:
        if text:
            repeats.parse(text)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None


def _mapping(where: str, data: Any) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise UsageError(f"{where}: must be a mapping, not {data!r}")
    return {str(key): value for key, value in data.items()}


def _build(kind: Any, data: Mapping[str, Any], where: str) -> Any:
    known = {entry.name: entry for entry in fields(kind)}
    for word, value in data.items():
        if word not in known:
            near = difflib.get_close_matches(word, known, n=1)
            hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(known)}."
            raise UsageError(f"{where}: unknown word {word!r}; {hint}")
        expected = _type(known[word])
        if not isinstance(value, expected) or (expected is int and isinstance(value, bool)):
            raise UsageError(f"{where}: {word} must be of type {expected.__name__}, not {value!r}")
    for name, entry in known.items():
        if name not in data and entry.default is MISSING and entry.default_factory is MISSING:
            raise UsageError(f"{where}: {name} is missing")
    return kind(**data)


def _type(entry: Any) -> type:
    if entry.default is not MISSING:
        return type(entry.default)
    return dict if entry.default_factory is dict else list if entry.name != "board" else str
