"""Sides of a board measured in turn: an A/B, and the search for the change that made a metric worse."""

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from evmperf.boards import variation
from evmperf.judge import ab as sides
from evmperf.judge import experiment, gitrange, search
from evmperf.judge.experiment import Experiment
from evmperf.judge.rounds import Sessions
from evmperf.judge.search import Bisection, Bisector, Step, StepAnswer
from evmperf.lab.keeping.claim import Holding
from evmperf.lab.provision.record import with_images
from evmperf.measure import boardfile
from evmperf.measure.runs import differences
from evmperf.measure.runs.differences import Difference
from evmperf.measure.runs.spool import new_run_id
from evmperf.model.change import Comparison
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.units import counted
from evmperf.publish.report import ab as report

Tell = Callable[[str], None]

_BLOCKS = 20
"""Most blocks of an A/B, where nobody says otherwise."""
_STOP = 128
"""What git's bisection ends at."""


class MeasureSides(msgspec.Struct, frozen=True, kw_only=True):
    """Measure two variations of a board in turn (`evmperf ab`), or `resume` what a folder has; at most
    `rounds` blocks and `budget` seconds (0: what was said before, else 20 blocks).
    """

    board: str = ""
    a: tuple[str, ...] = ()
    b: tuple[str, ...] = ()
    metric: tuple[str, ...] = ()
    within: float = 0.02
    rounds: int | None = None
    budget: float = 0.0
    select: str = ""
    profile: str = ""
    boots: int = 0
    wait: float = 0.0
    results: str = "results"
    resume: str = ""


class Bisect(msgspec.Struct, frozen=True, kw_only=True):
    """Find the change that made a metric worse (`evmperf bisect`), or `resume` a search."""

    board: str = ""
    of: str = ""
    what: tuple[str, ...] = ()
    metric: str = ""
    build: str = ""
    repository: str = "."
    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    spare: tuple[str, ...] = ()
    rounds: int = 60
    select: str = ""
    profile: str = ""
    boots: int = 0
    wait: float = 0.0
    results: str = "results"
    resume: str = ""


def ab(
    request: MeasureSides, tell: Tell, show: Callable[[Comparison, str], None]
) -> tuple[Path, Comparison, Sequence[Difference]]:
    """Measure an A/B; its folder, its state, and what differs between its sides. `show` gets its state after
    each block, and what it still takes in words. Raises UsageError for a wrong request, LabError and
    BoardError, after which it can be resumed.
    """
    if request.resume:
        folder = Path(request.resume)
        plan = Experiment.load(folder)
        plan.budget_s = request.budget or plan.budget_s
        plan.blocks = request.rounds or plan.blocks
    else:
        plan = _ab(request)
        folder = Path(request.results, plan.id)

    def shown(comparison: Comparison) -> None:
        report.write(folder, comparison, ())
        show(comparison, comparison.plan(plan.blocks, plan.budget_s))

    comparison = in_turn(folder, plan, request.wait, tell, shown)
    a, b = ([folder / pair[side].run for pair in plan.pairs()] for side in (0, 1))
    changed = differences.between(a, b) if a else []
    report.write(folder, comparison, changed)
    return folder, comparison, changed


def in_turn(
    folder: Path, plan: Experiment, wait_s: float, tell: Tell, show: sides.Show = lambda so_far: None
) -> Comparison:
    """Measure the blocks of an A/B on a board that is held meanwhile."""
    sessions = Sessions(folder)
    with experiment.held(folder), Holding(plan.id, wait_s) as holding:
        holding.have(plan.board)
        tell(f"measuring into {folder}")
        try:
            sessions.wait_for_others()
            return sides.go_on(folder, plan, sessions, show)
        except BaseException:
            tell(f"to go on: evmperf ab --resume {folder}")
            raise


def _ab(request: MeasureSides) -> Experiment:
    if not request.board:
        raise UsageError("evmperf ab needs a board file, or --resume FOLDER")
    board = boardfile.named(request.board)
    named = [variation.parse(words) for words in (request.a, request.b)]
    if named[0].words == named[1].words:
        raise UsageError(f"both sides are {named[0]}: give them different --a and --b")
    blocks = _BLOCKS if request.rounds is None else request.rounds
    if blocks < 1:
        raise UsageError(f"--rounds {blocks}: must be at least 1")
    a, b = with_images([side.words for side in named], board)
    return Experiment(
        id=f"ab-{new_run_id(board.name)}",
        boards=[request.board],
        sides={"a": a, "b": b},
        seed=os.urandom(8).hex(),
        blocks=blocks,
        budget_s=request.budget,
        metrics=list(request.metric),
        **{name: getattr(request, name) for name in ("select", "profile", "boots", "within")},
    )


def bisect(request: Bisect, tell: Tell) -> tuple[ExitStatus, Sequence[str]]:
    """Search for the change; the exit status, and as lines the steps and the answer, none where good and bad
    do not differ. Raises as `ab`.
    """
    if request.resume:
        folder = Path(request.resume)
        bisection = Bisection.load(folder)
    else:
        bisection = _bisection(request)
        folder = Path(request.results, bisection.id)
    tell(f"measuring into {folder}")
    with experiment.held(folder), Holding(bisection.id, request.wait) as holding:
        try:
            bisector = _bisector(folder, bisection, holding, tell)
            return _searched(folder, bisector, tell)
        except BaseException:
            tell(f"to go on: evmperf bisect --resume {folder}")
            raise


def _bisection(request: Bisect) -> Bisection:
    for name in ("board", "of", "metric", "what"):
        if not getattr(request, name):
            raise UsageError(f"evmperf bisect needs {name}, or --resume FOLDER; see --help")
    if request.metric.count("/") != 2:
        raise UsageError(f"--metric {request.metric}: write BENCHMARK/CASE/METRIC")
    if not any("{}" in word for word in request.what):
        raise UsageError("--what: must hold {} where the version goes")
    board = boardfile.named(request.board)
    repository = Path(request.repository)
    commits = request.of.removeprefix("git:") if request.of.startswith("git:") else ""
    versions = list(gitrange.commits(repository, commits)) if commits else _listed(Path(request.of))
    ends = [[word.replace("{}", end) for word in request.what] for end in (versions[0], versions[-1])]
    words = [list(request.good) or ends[0], list(request.bad) or ends[1], list(request.what)]
    if not request.build:  # else what a file of words says is known only when it is built
        for end in ends:
            variation.parse(end)
        words = with_images(words, board)
    return Bisection(
        id=f"bisect-{new_run_id(board.name)}",
        boards=[request.board, *request.spare],
        sides=dict(zip((search.GOOD, search.BAD, search.CANDIDATE), words, strict=True)),
        metrics=[request.metric],
        seed=os.urandom(8).hex(),
        select=request.select or "-".join(request.metric.split("/")[:2]),
        profile=request.profile,
        boots=request.boots,
        build=request.build,
        repository=str(repository.resolve()) if commits else "",
        blocks=request.rounds,
        versions=versions,
    )


def _listed(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise UsageError(f"{file}: cannot be read: {error.strerror}") from error
    versions = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if len(versions) < 2:
        raise UsageError(f"{file}: names {len(versions)} versions; a bisection needs at least two")
    if len(set(versions)) < len(versions):
        raise UsageError(f"{file}: names a version twice")
    return versions


def _bisector(folder: Path, bisection: Bisection, holding: Holding, tell: Tell) -> Bisector:
    bisection.save(folder)
    measure = Sessions(folder, holding.have).round
    return Bisector(bisection, measure, lambda now: now.save(folder), tell)


def _searched(folder: Path, bisector: Bisector, tell: Tell) -> tuple[ExitStatus, Sequence[str]]:
    bisection = bisector.search
    if bisection.repository:
        status, sentence = _of_commits(folder, bisector)
        bisection = Bisection.load(folder)  # each step is a process of its own
    else:
        answer = search.bisect(bisector)
        status = ExitStatus.NOTHING if answer is None else ExitStatus.FAILED if answer.why else ExitStatus.OK
        sentence = str(answer or "") if status else f"the first bad version is {answer}"
    if status is ExitStatus.NOTHING:
        blocks = f"{len(bisection.pairs())} blocks show no difference between good and bad"
        tell(f"{blocks} in {bisection.metric}: there is nothing to bisect")
    if not sentence:
        return status, []
    bisection.ended = sentence
    bisection.save(folder)
    steps = [
        f"{step.version}: {step.answer} ({step.bad:.1%} bad, {counted(step.blocks, 'block')}{why})"
        for step in bisection.steps
        for why in [step.why and f", {step.why}"]
    ]
    spent = f"{counted(len(bisection.rounds), 'round')}, {bisection.spent_s / 60:.0f} min of measuring"
    return status, [*steps, f"{spent}: {sentence}."]


def _of_commits(folder: Path, bisector: Bisector) -> tuple[ExitStatus, str]:
    """Let git search; returns the status and the answer, "" for none."""
    bisection = bisector.search
    repository = Path(bisection.repository)
    good, bad = bisection.versions
    if bisection.build and not bisection.rounds:
        before = gitrange.git(repository, "rev-parse", "HEAD")
        for version in (good, bad):
            gitrange.git(repository, "checkout", "--quiet", version)
            if not gitrange.build(bisection.build, version, folder, repository):
                raise UsageError(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
        gitrange.git(repository, "checkout", "--quiet", before)
    if not bisector.calibrate():
        return ExitStatus.NOTHING, ""
    gitrange.git(repository, "bisect", "start", bad, good)
    command = [sys.executable, "-m", "evmperf", "bisect", "--step", str(folder.resolve())]
    try:
        status = gitrange.run(repository, command)
        first, possible = gitrange.found(repository)
        names = [gitrange.title(repository, commit) for commit in possible]
        name = gitrange.title(repository, first) if first else ""
    finally:
        gitrange.git(repository, "bisect", "reset")
    done = Bisection.load(folder)
    if name:
        sure = search.probability(done.steps)
        return ExitStatus.OK, f"the first bad commit is {name}, with a probability of {sure:.1%}"
    if names:
        return ExitStatus.FAILED, f"one of these, as some versions have no answer: {'; '.join(names)}"
    if done.stuck:
        return ExitStatus.FAILED, f"not found: {done.stuck}"
    return (ExitStatus.LAB_BROKEN if status >= _STOP else ExitStatus.FAILED), ""


def bisect_step(folder: Path, version: str, tell: Tell) -> tuple[Step, bool]:
    """What a version is like, by default that checked out here, and whether the search is stuck.

    Raises UsageError where good and bad do not differ, LabError and BoardError.
    """
    bisection = Bisection.load(folder)
    version = version or gitrange.git(Path(), "rev-parse", "HEAD")
    has_step = any(step.version == version for step in bisection.steps)
    if bisection.build and not has_step and not gitrange.build(bisection.build, version, folder):
        tell(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
        return Step(version, StepAnswer.UNKNOWN, 0.5, 0), False
    with Holding(bisection.id) as holding:
        bisector = _bisector(folder, bisection, holding, tell)
        if not bisector.calibrate():
            raise UsageError("good and bad do not differ: there is nothing to bisect")
        step = bisector.step(version)
    blocks = counted(step.blocks, "block")
    tell(f"{version}: {step.answer} ({step.bad:.1%} bad, {blocks}) {step.why}")
    if bisector.search.stuck:
        tell(bisector.search.stuck)
    return step, bool(bisector.search.stuck)
