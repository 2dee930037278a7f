"""The plan of a night: what to measure within which limits, from a YAML file or a command's options.

`evmperf night` measures it, `evmperf gitlab pipeline` makes GitLab's pipeline of it.
docs/lab-at-scale.md describes it for people.
"""

import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import structs
from msgspec.structs import replace

from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.commands.app.images import by_board
from evmperf.judge.against import parse
from evmperf.lab.keeping.wanted import Wanted, placement
from evmperf.model import repeats
from evmperf.model.errors import UsageError
from evmperf.model.units import seconds

AGAINST = "last:30"
"""Baseline of a night's verdicts, where nobody says otherwise."""
_CLOCK = re.compile(r"([01]?\d|2[0-3]):([0-5]\d)")


class Job(msgspec.Struct, frozen=True):
    """One board to measure: `board` is its file, `place` names its place. `uses` are shared things with a
    limit in the plan.
    """

    board: str
    name: str = ""
    place: str = ""
    benchmarks: str = ""
    profile: Literal["", "full", "quick"] = ""
    release: str = ""
    repeat: str = ""
    limit: str = ""
    image: str = ""
    """The image to put on the board first, as pytest's --image; "" for none."""
    uses: list[str] = []
    options: list[str] = []


class NightPlan(msgspec.Struct, frozen=True):
    """A night. Durations are as in 30m, `until` is a time of day (06:30) or a duration.

    `images` are words IMAGE, for all boards, or BOARD=IMAGE for those with the board file BOARD; jobs
    have theirs once a plan is read.
    """

    boards: list[Job]
    name: str = ""
    results: str = "results"
    until: str = "12h"
    stagger: str = "2s"
    at_once: Annotated[int, msgspec.Meta(ge=0)] = 0
    limits: Mapping[str, Annotated[int, msgspec.Meta(ge=1)]] = {}
    release: str = ""
    repeat: str = ""
    images: list[str] = []
    run_kind: str = "nightly"
    against: str = AGAINST
    one_night: bool = True
    """Whether a single night decides on a loss."""
    history: str = ""
    """Where earlier runs are, DIR or influx; "" for the night's own results."""
    confirm: str = ""
    """Time for an A/B that checks worse figures again, "" for none."""
    guide: bool = True
    push: bool = False
    site: bool = True

    def placement(self, job: Job) -> Wanted:
        """What to hold for a job that names its board; raises UsageError."""
        file = board_file(job)
        return placement(file, place=job.place or file.stem)

    def words(self, job: Job, *, lava: bool = False) -> list[str]:
        """The options of pytest for a job, but those of board, place and results; or those of `evmperf
        lava submit`.
        """
        release, repeat = job.release or self.release, job.repeat or self.repeat
        words = ["-k", job.benchmarks] if job.benchmarks else []
        words += ["--profile", job.profile] if job.profile else []
        words += ["--release", release] if release else []
        if not lava:
            words += ["--run-kind", self.run_kind, *job.options]
            words += [f"--repeat={repeat}"] if repeat else []
        return words + (["--image", job.image] if job.image else [])


def read(path: Path) -> NightPlan:
    """Read and check a plan; raises UsageError that names file and word."""
    return checked(yamlfile.read(path), str(path), path.stem)


def checked(data: Any, where: str, name: str) -> NightPlan:
    """The plan that these words are; `where` they are said, and the plan's `name` if they say none. Raises
    UsageError.
    """
    _check_words(where, "the plan", NightPlan, data)
    for number, entry in enumerate(data.get("boards") or [], 1):
        _check_words(where, f"boards, number {number}", Job, entry)
    if isinstance(data.get("until"), int):  # YAML reads 22:30 as a number of base 60
        raise UsageError(f'{where}: until: write a time of day in quotes, as "22:30", a duration as 90m')
    try:
        plan = msgspec.convert({"name": name, **data}, NightPlan)
    except msgspec.ValidationError as error:
        raise UsageError(f"{where}: {str(error).replace('$.', '')}") from None
    if "/" in plan.name:
        raise UsageError(f"{where}: name: {plan.name!r} names the night's folder: leave out the /")
    if not plan.boards:
        raise UsageError(f"{where}: boards: is empty: there is nothing to measure")
    jobs: list[Job] = []
    for number, job in enumerate(plan.boards, 1):
        at = f"{where}: boards, number {number}"
        jobs.append(_check(job, plan, at, {other.name for other in jobs}))
    _check_each(where, repeats.parse, plan.repeat)
    _check_each(where, seconds, plan.stagger, plan.confirm)
    _check_each(where, lambda _: end_of(plan, 0), plan.until)
    _check_each(f"{where}: against", parse, plan.against)
    stems = list(dict.fromkeys(board_file(job).stem for job in jobs))
    given = by_board(plan.images, stems)
    jobs = [replace(job, image=job.image or given.get(board_file(job).stem, "")) for job in jobs]
    return replace(plan, boards=jobs, images=[])


def end_of(plan: NightPlan, began: float) -> float:
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


def _check(job: Job, plan: NightPlan, where: str, taken: set[str]) -> Job:
    file = board_file(job)
    boards.load(file)
    if job.place and not plan.placement(job).coordinator:
        raise UsageError(f"{where}: place: {file} has no RemotePlace, so it is of no place at a coordinator")
    for thing in job.uses:
        if thing not in plan.limits:
            raise UsageError(f"{where}: uses {thing}, which has no number under limits")
    _check_each(where, seconds, job.limit)
    _check_each(where, repeats.parse, job.repeat)
    usual = name = job.name or job.place or file.stem
    number = 1
    while name in taken:
        number += 1
        name = f"{usual}-{number}"
    return replace(job, name=name)


def _check_each(where: str, check: Callable[[str], object], *texts: str) -> None:
    for text in filter(None, texts):
        try:
            check(text)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None


def _check_words(where: str, part: str, kind: type[msgspec.Struct], data: object) -> None:
    if not isinstance(data, dict):
        raise UsageError(f"{where}: {part} must be a mapping, not {data!r}")
    words = [field.name for field in structs.fields(kind)]
    for word in data:
        boards.check_word(Path(where), part, str(word), words)
