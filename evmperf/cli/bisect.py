"""`evmperf bisect` and `evmperf bisect-step`: which change made a metric worse."""

import argparse
import os
import sys
from pathlib import Path

from evmperf.boards import variation
from evmperf.cli.arguments import command, tell
from evmperf.keeping.claim import Holding
from evmperf.measure import boardfile
from evmperf.model.errors import EvmperfError, UsageError
from evmperf.model.exits import ExitStatus
from evmperf.provision.record import with_images
from evmperf.regress import experiment, gitrange, search
from evmperf.regress.rounds import Sessions, on_a_board
from evmperf.regress.search import Bisection, Bisector, StepAnswer
from evmperf.runs.spool import new_run_id

_SKIP, _STOP = 125, 128


@command("bisect")
def _bisect(options: argparse.Namespace) -> int:
    if options.resume:
        folder = options.resume
        wanted = Bisection.load(folder)
    else:
        wanted = _asked(options)
        folder = options.results / wanted.id
    tell(f"measuring into {folder}")
    with experiment.held(folder), Holding(wanted.id, options.wait) as holding:
        try:
            status = _search(_bisector(folder, wanted, holding), folder)
        except BaseException:
            tell(f"to go on: evmperf bisect --resume {folder}")
            raise
    return status


def _asked(options: argparse.Namespace) -> Bisection:
    for name in ("board", "of", "metric", "what"):
        if not getattr(options, name):
            raise UsageError(f"evmperf bisect needs {name}, or --resume FOLDER; see --help")
    if options.metric.count("/") != 2:
        raise UsageError(f"--metric {options.metric}: write BENCHMARK/CASE/METRIC")
    if not any("{}" in word for word in options.what):
        raise UsageError("--what: must hold {} where the version goes")
    loaded = boardfile.named(options.board)
    commits = options.of.removeprefix("git:") if options.of.startswith("git:") else ""
    versions = list(gitrange.commits(options.repository, commits)) if commits else _listed(Path(options.of))
    if not options.build:  # else what a file of words says is known only when it is built
        for word in (versions[0], versions[-1]):
            variation.parse(entry.replace("{}", word) for entry in options.what)
    first, last = ([word.replace("{}", end) for word in options.what] for end in (versions[0], versions[-1]))
    words = [options.good or first, options.bad or last, options.what]
    if not options.build:
        words = with_images(words, loaded)
    return Bisection(
        id=f"bisect-{new_run_id(loaded.name)}",
        boards=[options.board, *options.spare],
        sides=dict(zip((search.GOOD, search.BAD, search.CANDIDATE), words, strict=True)),
        metrics=[options.metric],
        seed=os.urandom(8).hex(),
        select=options.select or "-".join(options.metric.split("/")[:2]),
        profile=options.profile,
        boots=options.boots,
        build=options.build,
        repository=str(options.repository.resolve()) if commits else "",
        blocks=options.rounds,
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


def _search(bisector: Bisector, folder: Path) -> int:
    wanted = bisector.search
    if wanted.repository:
        return _search_commits(folder, bisector)
    answer = search.bisect(bisector)
    if answer is None:
        return _no_difference(wanted)
    _end(folder, wanted, f"the first bad version is {answer}" if not answer.why else str(answer))
    return ExitStatus.FAILED if answer.why else ExitStatus.OK


def _search_commits(folder: Path, bisector: Bisector) -> int:
    wanted = bisector.search
    repository = Path(wanted.repository)
    good, bad = wanted.versions
    if wanted.build and not wanted.rounds:
        before = gitrange.git(repository, "rev-parse", "HEAD")
        for version in (good, bad):
            gitrange.git(repository, "checkout", "--quiet", version)
            if not gitrange.build(wanted.build, version, folder, repository):
                raise UsageError(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
        gitrange.git(repository, "checkout", "--quiet", before)
    if not bisector.calibrate():
        return _no_difference(wanted)
    gitrange.git(repository, "bisect", "start", bad, good)
    step = [sys.executable, "-m", "evmperf", "bisect-step", str(folder.resolve())]
    try:
        status = gitrange.run(repository, step)
        first, possible = gitrange.found(repository)
        names = [gitrange.title(repository, commit) for commit in possible]
        name = gitrange.title(repository, first) if first else ""
    finally:
        gitrange.git(repository, "bisect", "reset")
    done = Bisection.load(folder)
    if name:
        sure = search.probability(done.steps)
        _end(folder, done, f"the first bad commit is {name}, with a probability of {sure:.1%}")
        return ExitStatus.OK
    if names:
        _end(folder, done, f"one of these, as some versions have no answer: {'; '.join(names)}")
        return ExitStatus.FAILED
    if done.stuck:
        _end(folder, done, f"not found: {done.stuck}")
        return ExitStatus.FAILED
    return ExitStatus.LAB_BROKEN if status >= _STOP else ExitStatus.FAILED


def _bisector(folder: Path, wanted: Bisection, holding: Holding) -> Bisector:
    folder.mkdir(parents=True, exist_ok=True)
    wanted.save(folder)
    measure = on_a_board(Sessions(folder), holding.have)
    return search.Bisector(wanted, measure, lambda now: now.save(folder), tell)


def _no_difference(wanted: Bisection) -> int:
    tell(
        f"{len(wanted.pairs())} blocks show no difference between good and bad in "
        f"{wanted.metric}: there is nothing to bisect"
    )
    return ExitStatus.NOTHING


def _end(folder: Path, wanted: Bisection, sentence: str) -> None:
    wanted.ended = sentence
    wanted.save(folder)
    for step in wanted.steps:
        why = f", {step.why}" if step.why else ""
        print(f"{step.version}: {step.answer} ({step.bad:.1%} bad, {step.blocks} blocks{why})")
    minutes = wanted.spent_s / 60
    print(f"{len(wanted.rounds)} rounds, {minutes:.0f} min of measuring: {sentence}.")


@command("bisect-step")
def _step(options: argparse.Namespace) -> int:
    try:
        return _like(options.folder, options.version)
    except EvmperfError as error:
        tell(str(error))
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  # git takes 1 for "bad"
        tell(f"{type(error).__name__}: {error}")
    return _STOP


def _like(folder: Path, version: str) -> int:
    wanted = Bisection.load(folder)
    version = version or gitrange.git(Path(), "rev-parse", "HEAD")
    known = any(step.version == version for step in wanted.steps)
    if wanted.build and not known and not gitrange.build(wanted.build, version, folder):
        tell(f"{version} does not build; see {folder / gitrange.BUILD_LOG}")
        return _SKIP
    with Holding(wanted.id) as holding:
        bisector = _bisector(folder, wanted, holding)
        if not bisector.calibrate():
            raise UsageError("good and bad do not differ: there is nothing to bisect")
        step = bisector.step(version)
    tell(f"{version}: {step.answer} ({step.bad:.1%} bad, {step.blocks} blocks) {step.why}")
    if bisector.search.stuck:
        tell(bisector.search.stuck)
        return _STOP
    return {StepAnswer.GOOD: 0, StepAnswer.BAD: 1}.get(step.answer, _SKIP)
