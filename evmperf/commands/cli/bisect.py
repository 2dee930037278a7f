"""`evmperf bisect`: which change made a metric worse."""

import argparse
import os
import sys
from pathlib import Path

from evmperf.boards import variation
from evmperf.commands.cli.arguments import RESULTS, ROUND, argument, command, tell
from evmperf.judge import experiment, gitrange, search
from evmperf.judge.rounds import Sessions
from evmperf.judge.search import Bisection, Bisector, Step, StepAnswer
from evmperf.lab.keeping.claim import Holding
from evmperf.lab.provision.record import with_images
from evmperf.measure import boardfile
from evmperf.measure.runs.spool import new_run_id
from evmperf.model import inputs, limits
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.units import counted

_SKIP, _STOP = 125, 128
"""What a step says to git: it cannot tell, and no further step. git's bisection ends at the second."""


@command(
    "bisect",
    argument("board", nargs="?", default="", help="a board file, as for pytest --lg-env"),
    argument("--of", default="", metavar="LIST|git:GOOD..BAD", help="a file of versions, or commits"),
    argument(
        "--what",
        action="append",
        default=[],
        metavar="WHAT",
        help="a side of `evmperf ab` with {} for the version",
    ),
    argument("--metric", default="", metavar="BENCHMARK/CASE/METRIC", help="the metric that became worse"),
    argument("--build", default="", metavar="COMMAND", help="builds a version"),
    argument("--repository", type=Path, default=".", metavar="DIR", help="git's checkout (default: .)"),
    argument(
        "--good",
        action="append",
        default=[],
        metavar="WHAT",
        help="the good version (default: the first of the list)",
    ),
    argument(
        "--bad",
        action="append",
        default=[],
        metavar="WHAT",
        help="the bad version (default: the last of the list)",
    ),
    argument(
        "--spare",
        action="append",
        default=[],
        metavar="BOARD",
        help="another board of the kind, if the first one fails",
    ),
    argument("--rounds", type=int, default=60, metavar="N", help="most blocks for one answer (default: 60)"),
    argument("-k", default="", dest="select", help="what to measure (default: the case)"),
    *ROUND,
    argument("--resume", type=Path, metavar="FOLDER", help="go on with a bisection"),
    argument(
        "--step",
        nargs="+",
        metavar=("FOLDER", "VERSION"),
        help="one step of that bisection, for git: is VERSION good? (default: the commit checked out here)",
    ),
    RESULTS,
    epilog=r"""A list of versions, the first good, the last bad; {} in --what stands for each:
      evmperf bisect am64x.yaml --of releases.txt --what image:{} \
        --metric emmc_raw_fio_1g/4m/write_throughput

    Commits, by `git bisect run`. --build makes the image of --what in a checkout of $VERSION; its
    name must contain the version, as good and bad are measured again beside each candidate:
      evmperf bisect am64x.yaml --of git:v1.2..main --build 'make image O=/tmp/$VERSION' \
        --what image:/tmp/{}/image.wic --metric boot_time_mmcsd/default_rootfs/boot_time

    Both go on after Ctrl-C, kill -9 or a broken lab with `evmperf bisect --resume FOLDER`. Exit status:
    0 the change was found, 1 it was not, 3 the lab is broken, 5 good and bad do not differ. With --step,
    for git: 0 like the good version, 1 like the bad one, 125 cannot tell (does not build, does not boot,
    neither like good nor like bad), 128 the lab is broken or the difference is too small: git stops.
    """,
)
def _bisect(options: argparse.Namespace) -> int:
    """Find the change that made a metric worse, by measuring versions between a good and a bad one; good
    and bad are measured again beside each (docs/ab.md).
    """
    if options.step:
        return _step(*options.step)
    if options.resume:
        folder = options.resume
        bisection = Bisection.load(folder)
    else:
        bisection = _bisection(options)
        folder = options.results / bisection.id
    tell(f"measuring into {folder}")
    with experiment.held(folder), Holding(bisection.id, options.wait) as holding:
        try:
            return _searched(folder, _bisector(folder, bisection, holding))
        except BaseException:
            tell(f"to go on: evmperf bisect --resume {folder}")
            raise


def _step(folder: str, version: str = "") -> int:
    """Tell `git bisect run` whether a version is like the good one."""
    try:
        step, stuck = _answered(Path(folder), version)
    except EvmperfError as error:
        tell(str(error))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # git takes 1 for "bad"
        tell(f"{type(error).__name__}: {error}")
    else:
        if not stuck:
            return {StepAnswer.GOOD: 0, StepAnswer.BAD: 1}.get(step.answer, _SKIP)
    return _STOP


def _bisection(options: argparse.Namespace) -> Bisection:
    for name in ("board", "of", "metric", "what"):
        if not getattr(options, name):
            raise UsageError(f"evmperf bisect needs {name}, or --resume FOLDER; see --help")
    if options.metric.count("/") != 2:
        raise UsageError(f"--metric {options.metric}: write BENCHMARK/CASE/METRIC")
    if not any("{}" in word for word in options.what):
        raise UsageError("--what: must hold {} where the version goes")
    board = boardfile.named(options.board)
    repository = options.repository
    commits = options.of.removeprefix("git:") if options.of.startswith("git:") else ""
    versions = list(gitrange.commits(repository, commits)) if commits else _listed(Path(options.of))
    ends = [[word.replace("{}", end) for word in options.what] for end in (versions[0], versions[-1])]
    words = [list(options.good) or ends[0], list(options.bad) or ends[1], list(options.what)]
    if not options.build:  # else what a file of words says is known only when it is built
        for end in ends:
            variation.parse(end)
        words = with_images(words, board)
    return Bisection(
        id=f"bisect-{new_run_id(board.name)}",
        boards=[options.board, *options.spare],
        sides=dict(zip((search.GOOD, search.BAD, search.CANDIDATE), words, strict=True)),
        metrics=[options.metric],
        seed=os.urandom(8).hex(),
        select=options.select or "-".join(options.metric.split("/")[:2]),
        profile=options.profile,
        boots=options.boots,
        build=options.build,
        repository=str(repository.resolve()) if commits else "",
        blocks=options.rounds,
        versions=versions,
    )


def _listed(file: Path) -> list[str]:
    lines = inputs.text(file, limits.YAML_BYTES).splitlines()
    versions = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    if len(versions) < 2:
        raise UsageError(f"{file}: names {len(versions)} versions; a bisection needs at least two")
    if len(set(versions)) < len(versions):
        raise UsageError(f"{file}: names a version twice")
    return versions


def _bisector(folder: Path, bisection: Bisection, holding: Holding) -> Bisector:
    bisection.save(folder)
    measure = Sessions(folder, holding.have).round
    return Bisector(bisection, measure, lambda now: now.save(folder), tell)


def _searched(folder: Path, bisector: Bisector) -> ExitStatus:
    """Search, and print the steps and the answer, none where good and bad do not differ."""
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
        return status
    bisection.ended = sentence
    bisection.save(folder)
    for step in bisection.steps:
        why = step.why and f", {step.why}"
        print(f"{step.version}: {step.answer} ({step.bad:.1%} bad, {counted(step.blocks, 'block')}{why})")
    spent = f"{counted(len(bisection.rounds), 'round')}, {bisection.spent_s / 60:.0f} min of measuring"
    print(f"{spent}: {sentence}.")
    return status


def _of_commits(folder: Path, bisector: Bisector) -> tuple[ExitStatus, str]:
    """Let git search; returns the status and the answer, "" for none."""
    bisection = bisector.search
    repository = Path(bisection.repository)
    good, bad = bisection.versions
    if bisection.build and not bisection.rounds:
        with gitrange.put_back(repository):
            for version in (good, bad):
                gitrange.git(repository, "checkout", "--quiet", version)
                if not gitrange.build(bisection.build, version, folder, repository):
                    raise UsageError(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
    if not bisector.calibrate():
        return ExitStatus.NOTHING, ""
    gitrange.git(repository, "bisect", "start", bad, good)
    command = [sys.executable, "-m", "evmperf", "bisect", "--step", str(folder.resolve())]
    try:
        status = gitrange.run(repository, command)
        first, possible = gitrange.first_bad(repository)
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


def _answered(folder: Path, version: str) -> tuple[Step, bool]:
    """What a version is like, by default that checked out here, and whether the search is stuck."""
    bisection = Bisection.load(folder)
    version = version or gitrange.git(Path(), "rev-parse", "HEAD")
    has_step = any(step.version == version for step in bisection.steps)
    if bisection.build and not has_step and not gitrange.build(bisection.build, version, folder):
        tell(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
        return Step(version, StepAnswer.UNKNOWN, 0.5, 0), False
    with Holding(bisection.id) as holding:
        bisector = _bisector(folder, bisection, holding)
        if not bisector.calibrate():
            raise UsageError("good and bad do not differ: there is nothing to bisect")
        step = bisector.step(version)
    blocks = counted(step.blocks, "block")
    tell(f"{version}: {step.answer} ({step.bad:.1%} bad, {blocks}) {step.why}")
    if bisector.search.stuck:
        tell(bisector.search.stuck)
    return step, bool(bisector.search.stuck)
