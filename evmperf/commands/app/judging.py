"""Judging runs: verdicts, goals, alarms that are checked again, and where verdicts are kept."""

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evmperf.commands.app import again, sources, why
from evmperf.commands.app.experiments import in_turn
from evmperf.judge import against, confirm, experiment, goals
from evmperf.measure.runs import differences, spool
from evmperf.measure.runs.differences import Difference
from evmperf.measure.runs.history import GUIDE, run_folder
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.exits import ExitStatus, of_kind
from evmperf.model.figures import figures
from evmperf.model.replies import WantedSession
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome
from evmperf.publish.influx.push import send_if_named
from evmperf.publish.report import ab as report
from evmperf.publish.report import differences as differing
from evmperf.publish.report import page

Tell = Callable[[str], None]

_GRAVEST_FIRST = (
    ExitStatus.USAGE,
    ExitStatus.LAB_BROKEN,
    ExitStatus.INTERRUPTED,
    ExitStatus.FAILED,
    ExitStatus.UNDECIDED,
    ExitStatus.OK,
    ExitStatus.NOTHING,
)


@dataclass(frozen=True)
class Conclusion:
    """What is known of one run: its judgement, and what differs between the runs `before` and
    `after` what got worse; `told` says in lines what differs, "" where no runs are known.
    """

    judgement: Judgement
    differences: Sequence[Difference] = ()
    told: str = ""


@dataclass(frozen=True)
class Check:
    """How runs (folders, or names below `results`) are judged.

    `source` names where earlier runs are ("" for `results` and the lab's store); `level` is the
    false discovery rate (None: the usual). With `confirm_s` what is worse is checked again within
    so many seconds on `board` ("" for the run's own), which is waited for `wait_s` seconds. Without
    `keep` nothing is written.
    """

    against: str
    results: Path
    source: str
    level: float | None
    confirm_s: float
    board: str
    wait_s: float
    keep: bool


def check(
    runs: Sequence[str], request: Check, tell: Tell, show: Callable[[Conclusion], None]
) -> tuple[ExitStatus, list[str]]:
    """Judge runs, and `show` each; the gravest status, and why some were not judged. One of several
    that cannot be judged does not keep the others from it. Raises EvmperfError for a single one,
    UsageError for a wrong request.
    """
    what = against.wanted(request.against)
    statuses: list[ExitStatus] = []
    failed = []
    for given in runs:
        try:
            folder = against.run_folder(given, request.results)
            conclusion = concluded(request, folder, what, tell)
            show(conclusion)
            statuses.append(conclusion.judgement.exit_status)
        except EvmperfError as error:
            if len(runs) == 1:
                raise
            failed.append(f"{given}: {error}")
            statuses.append(of_kind(error.kind))
    status = next((status for status in _GRAVEST_FIRST if status in statuses), ExitStatus.NOTHING)
    return status, failed


def compare(a_runs: Sequence[str], b_runs: Sequence[str], results: Path, rate: float | None) -> Conclusion:
    """Judge side B by side A; raises UsageError for a side without a run."""
    a, b = sides(a_runs, b_runs, results)
    if len(a) > 1 or len(b) > 1:
        judgement = against.between(a, b, level(rate))
    else:
        what = against.WantedBaseline("run", a_runs[0])
        with sources.opened(str(results)) as source:
            judgement = against.judged(b[0], what, source, level(rate))
    changed = differences.between(a, b)
    return Conclusion(judgement, changed, named([a, b], changed, "What differs besides"))


def sides(a_runs: Sequence[str], b_runs: Sequence[str], results: Path) -> list[list[Path]]:
    """The folders of the runs of both sides; raises UsageError unless each has one."""
    if not a_runs or not b_runs:
        raise UsageError("two sides are needed: A B, or --a RUN... --b RUN...")
    return [[against.run_folder(run, results) for run in side] for side in (a_runs, b_runs)]


def reproduce(file: Path, board: str, results: Path) -> tuple[Path, Judgement, int]:
    """Measure the case of a case file on a board in the same way, into `results`, and compare: the run's
    folder, its judgement by the case file, and the status of both. Raises UsageError for a case that cannot
    be measured here, LabError where nothing was measured.
    """
    folder = run_folder(str(file), results)
    case = next(spool.results_in(folder), None)
    if case is None:
        raise UsageError(f"{file}: has no case")
    made, measured = again.measure(results, case, WantedSession(board=board))
    judgement = against.between([folder], [made])
    return made, judgement, measured or judgement.exit_status


def concluded(request: Check, folder: Path, what: against.WantedBaseline, tell: Tell) -> Conclusion:
    """Judge one run; raises UsageError for what there is not, LabError for the disk."""
    run = spool.read_run(folder)
    # A goal that cannot be understood is said before anything is judged.
    lab_goals = goals.of_run(run)
    with sources.opened(request.source, request.results, run.lab) as source:
        judgement = against.judged(folder, what, source, level(request.level))
        around = against.sides(folder, what, source, judgement)
    by_key = figures(spool.read_results(folder))
    reached = [
        goal.reached(by_key[goal.key].centre, by_key[goal.key].unit)
        if goal.key in by_key
        else goal.reached(None, "")
        for goal in lab_goals
    ]
    judgement = _confirmed(request, folder, replace(judgement, goals=reached), around.good, tell)
    changed: Sequence[Difference] = ()
    differs = ""
    if around.before and around.after:
        changed = differences.between(around.before, around.after)
        differs = named((around.before, around.after), changed, "What else changed")
    if request.keep:
        _keep(folder, judgement, differs, tell)
    return Conclusion(judgement, changed, differs)


def level(given: float | None) -> float | None:
    """The false discovery rate, if one is given; raises UsageError for one that is none."""
    if given is not None and not 0 < given < 1:
        raise UsageError(f"--level {given:g}: must be between 0 and 1")
    return given


def named(sides: Sequence[Sequence[Path]], changed: Sequence[Difference], title: str) -> str:
    """What differs between two sides of runs, in lines."""
    names = [" ".join(folder.name for folder in side) for side in sides]
    head = f"{title} (A: {names[0]}; B: {names[1]}):"
    lines = [head, *differing.lines(changed)] if changed else ["No other known difference."]
    return "".join(f"{line}\n" for line in lines)


def _confirmed(request: Check, folder: Path, judgement: Judgement, good: Run | None, tell: Tell) -> Judgement:
    """The judgement with the A/B's word on its alarms; without an A/B they stay, with the reason."""
    if not request.confirm_s or not judgement.perhaps_worse:
        return judgement
    try:
        return _again(request, folder, judgement, good, tell)
    except EvmperfError as error:
        return replace(judgement, again=f"not checked again: {error}")


def _again(request: Check, folder: Path, judgement: Judgement, good: Run | None, tell: Tell) -> Judgement:
    if good is None:
        raise UsageError("no earlier good run is known")
    run = spool.read_run(folder)
    sides = confirm.images(good, run)
    board = request.board or run.facts.board_file
    plan = confirm.asked(folder, judgement, board, sides, request.confirm_s)
    folder_of_ab = folder.parent / plan.id
    if (folder_of_ab / experiment.FILE).exists():
        plan = experiment.Experiment.load(folder_of_ab)  # it was interrupted
    tell(f"checking again against {sides.since}, into {folder_of_ab}")
    comparison = in_turn(folder_of_ab, plan, request.wait_s, lambda remark: None)
    report.write(folder_of_ab, comparison, ())
    return confirm.settled(judgement, comparison, sides.since, plan.board)


def _keep(folder: Path, judgement: Judgement, changed: str, tell: Tell) -> None:
    """Put verdicts where people look. A run that is still being measured is its session's."""
    if spool.read_run(folder).kind == GUIDE:
        return
    if spool.is_live(folder):
        text = f"{folder}: is still being measured; check it again after its end to keep the verdicts"
        tell(text)
        return
    against.keep(folder, judgement)
    with contextlib.suppress(FileNotFoundError):
        (folder / page.CHANGED).unlink()
    if changed:
        (folder / page.CHANGED).write_text(changed, encoding="utf-8")
    decided = any(map(judgement.count, (Outcome.WORSE, Outcome.BETTER, Outcome.SAME)))
    # A first run has nothing to be judged by: its page stays as it was.
    if decided or judgement.goals or not (folder / page.NAME).is_file():
        why.report(folder)
    if sources.has_store():
        sources.keep([folder], tell)
    if problem := send_if_named(folder):
        tell(problem)
