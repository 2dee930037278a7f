"""The board's file, the tests that the catalogue makes, and how a session ends."""

import contextlib
import difflib
import functools
import gc
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.boards import board as boards
from evmperf.boards.console.powering import Person
from evmperf.boards.vocabulary import FEATURES
from evmperf.commands.app.measuring import MeasuringSession
from evmperf.commands.cli import arguments
from evmperf.lab.keeping.claim import JOIN
from evmperf.measure import boardfile
from evmperf.model.ended import Ending, cause
from evmperf.model.errors import EvmperfError, LabError, UsageError, one_line, was_ctrl_c
from evmperf.model.exits import ExitStatus
from evmperf.model.outlets import plain
from evmperf.model.places import project
from evmperf.model.replies import SessionEnded, WantedSession
from evmperf.model.results import Case, Status
from evmperf.publish.influx.config import variable
from pytest_evmperf.options import OPTIONS
from pytest_evmperf.ticker import aside, teller

TESTS = project("tests")
"""What is measured when no path is given."""

Measure = Callable[[Benchmark, Case], None]

SESSION: pytest.StashKey[MeasuringSession] = pytest.StashKey()
RESULT: pytest.StashKey[Any] = pytest.StashKey()
_SIGNALS: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add evmperf's options."""
    group = parser.getgroup("evmperf", "measuring boards")
    for option in OPTIONS:
        group.addoption(*option.names, **option.words)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Iterator[Any]:
    """Tell the process that started this one how it ended."""
    try:
        status = yield
    except pytest.UsageError as error:
        _answer(config, SessionEnded(ending=Ending.WRONG, sentence="; ".join(map(str, error.args))))
        raise
    measuring = config.stash.get(SESSION, None)
    if measuring and (measuring.wrong_call or status not in (ExitStatus.USAGE, ExitStatus.NOTHING)):
        end = measuring.ended()
        run = measuring.run.id
        _answer(config, SessionEnded(run=run, ending=end.ending, sentence=end.sentence))
    return status


def _answer(config: pytest.Config, reply: SessionEnded) -> None:
    if file := config.option.answer:
        file.write_bytes(msgspec.json.encode(reply))


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Find the board's file, before Labgrid's plugin looks for it."""
    given = config.option.lg_env or os.environ.get("LG_ENV")
    several = getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput")
    ours = any(Path(arg.partition("::")[0]).resolve().is_relative_to(TESTS) for arg in config.args)
    if several and (given or ours):
        raise pytest.UsageError(
            "-n (pytest-xdist) would measure one board from several processes at once: leave it "
            "out, and start one pytest for each board"
        )
    if not given:
        return
    try:
        board = boardfile.named(given)
        boardfile.check_variables(board.file)
        asked = arguments.filled(WantedSession, config.option, board=given, select=config.option.keyword)
        session = MeasuringSession(board, asked)
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.lg_env = str(board.file)
    if config.args_source is config.ArgsSource.INVOCATION_DIR:
        # With `--lg-env FILE` pytest takes FILE's folder for the root; outside the checkout there
        # is no testpaths, and everything below the current folder would be collected.
        own = Path("tests")  # of a lab's own repository
        config.args = [str(TESTS), *([str(own)] if own.is_dir() and own.resolve() != TESTS else [])]
        config.option.importmode = "importlib"  # both folders may have a test_emmc.py
    # What the lab starts for us (a virtual EVM, a tester's shell) has no use for the token.
    os.environ.pop(variable("token"), None)
    session.person = Person(functools.partial(aside, config))
    config.stash[SESSION] = session
    config.add_cleanup(config.stash.setdefault(_SIGNALS, contextlib.ExitStack()).close)
    config.stash[_SIGNALS].enter_context(session.signals.watching())
    gc.freeze()  # what is loaded stays: pytest's full collections need not walk it
    if not config.option.collectonly:
        config.option.xmlpath = config.option.xmlpath or str(session.folder / "junit.xml")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of each benchmark of the module's driver."""
    if not {"benchmark", "case"} <= set(metafunc.fixturenames):
        return
    where = metafunc.definition
    driver = next((marker.args[0] for marker in where.iter_markers("lg_feature")), "")
    if not driver:
        raise pytest.UsageError(f"{where.path}: names no driver with pytest.mark.lg_feature")
    if driver not in FEATURES:
        raise pytest.UsageError(
            f"{where.path}: there is no driver {driver!r}; known are {', '.join(FEATURES)}"
        )
    session = metafunc.config.stash.get(SESSION, None)
    profile = session.run.profile if session else metafunc.config.option.profile or "full"
    pairs = [
        (benchmark, case)
        for benchmark in catalogue.benchmarks().values()
        if benchmark.driver == driver
        for case in benchmark.cases(profile)
    ]
    ids = [f"{benchmark.name}-{case.label}" for benchmark, case in pairs]
    metafunc.parametrize(("benchmark", "case"), pairs, ids=ids)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order what is measured so that few power cycles do, and skip what the board cannot."""
    measuring = [item for item in items if what_is_measured(item)]
    if not measuring:
        return
    session = config.stash.get(SESSION, None)
    if session is None:
        if config.option.collectonly:
            return
        raise _no_board()
    left_out = set(config.option.leave_out)
    gone = [i for i in items if (w := what_is_measured(i)) and f"{w[0].name}/{w[1]}" in left_out]
    if gone:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]
    places = list(Place)
    # Sorting is stable: within one place, tests stay in the order of the files.
    items.sort(key=lambda item: places.index(what[0].place) if (what := what_is_measured(item)) else -1)
    for item in measuring:
        what = what_is_measured(item)
        reason = session.unsupported(*what) if what else ""
        if reason:
            # Before Labgrid's, which knows the missing feature only.
            item.add_marker(pytest.mark.skip(reason=reason), append=False)


def _no_board() -> pytest.UsageError:
    names = ", ".join(boards.names())
    return pytest.UsageError(
        f"no board: name one with --lg-env FILE. Known boards: {names}. The virtual EVM is virtual.yaml."
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note what will be measured, what is left after selection and skips, and hold the board."""
    measuring = session.config.stash.get(SESSION, None)
    if measuring is None:
        return
    if not session.items:
        _write_nothing(session.config)
    measuring.planned = [
        what
        for item in session.items
        if (what := what_is_measured(item)) and not any(item.iter_markers("skip"))
    ]
    if session.config.option.collectonly:
        return
    own = any(map(_needs_board, session.items))
    held = measuring.planned or own or (JOIN in os.environ and session.config.option.leave_out)
    junit = session.config.option.xmlpath == str(measuring.folder / "junit.xml")  # nobody's choice
    if not measuring.planned and junit and all(map(_skips, session.items)):
        _write_nothing(session.config)
    try:
        if measuring.planned:
            measuring.check_image()
        if held:
            measuring.hold(session.config.option.lg_coordinator or "", teller(session.config))
        if held and not measuring.planned and not own:
            # An earlier session had to leave it on when it was taken.
            measuring.switch_off(teller(session.config))
    except UsageError as error:
        _write_nothing(session.config)
        raise pytest.UsageError(str(error)) from None
    except EvmperfError as error:
        measuring.fail(error)
        _write_nothing(session.config)
        raise pytest.exit.Exception(str(error), ExitStatus.LAB_BROKEN) from None


def _write_nothing(config: pytest.Config) -> None:
    """Keep pytest's JUnit report from making the folder of a run that measures nothing."""
    if junit := config.pluginmanager.get_plugin("junitxml"):
        junit.pytest_unconfigure(config)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say why nothing is measured: `-k` selects nothing, most often a typo, or the board lacks it."""
    keyword, sentence = config.option.keyword, ""
    if items and all(map(_skips, items)):
        sentence = f"nothing can be measured: {'; '.join(sorted(set(map(_skips, items))))}"
    elif keyword and not items:
        near = difflib.get_close_matches(keyword, [*FEATURES, *catalogue.benchmarks()], n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        sentence = f"-k {keyword} selects nothing.{hint} Drivers: {', '.join(FEATURES)}. "
        sentence += "`evmperf benchmark list` names the benchmarks."
    if not sentence or SESSION not in config.stash:
        return []
    _answer(config, SessionEnded(ending=Ending.WRONG, sentence=sentence))
    return [plain(sentence)]


def _skips(item: pytest.Item) -> str:
    """Why an item is skipped, "" if it is not."""
    return next((str(mark.kwargs.get("reason", "skipped")) for mark in item.iter_markers("skip")), "")


def _needs_board(item: pytest.Item) -> bool:
    """Whether a test uses the board, to measure a case or for a lab's own purpose, and is not skipped."""
    return "measuring" in getattr(item, "fixturenames", ()) and not any(item.iter_markers("skip"))


def what_is_measured(item: pytest.Item) -> tuple[Benchmark, Case] | None:
    """Benchmark and case of a measuring test, None for any other."""
    params = item.callspec.params if hasattr(item, "callspec") else {}
    benchmark, case = params.get("benchmark"), params.get("case")
    # pytest fills in a marker of its own (and skips) where a driver has no benchmark.
    if isinstance(benchmark, Benchmark) and isinstance(case, Case):
        return benchmark, case
    return None


@pytest.fixture(scope="session")
def measuring(request: pytest.FixtureRequest) -> Iterator[MeasuringSession]:
    """The session with its bench ready; the board is off again afterwards."""
    session = request.config.stash.get(SESSION, None)
    if session is None:
        raise _no_board()
    try:
        with _ending(request.session, session):
            session.open(_target(request), teller(request.config))
            if (state := request.config.option.lg_initial_state) and session.bench:
                session.bench.force(state)
        yield session
    finally:
        session.close()


def _target(request: pytest.FixtureRequest) -> Any:
    """Labgrid's target; raises LabError when the coordinator or the place is not available."""
    try:
        return request.getfixturevalue("target")
    except (Exception, pytest.exit.Exception) as error:  # noqa: BLE001  # no common base
        reason = one_line(error)
        raise LabError(
            f"Labgrid cannot provide the board: {reason}. Check the board file "
            f"and the devices of its place (`labgrid-client -p PLACE show`)"
        ) from None


@pytest.fixture
def measure(request: pytest.FixtureRequest, measuring: MeasuringSession) -> Measure:
    """A function that measures one case and fails the test when that did not work out."""

    def measure_case(benchmark: Benchmark, case: Case) -> None:
        with _ending(request.session, measuring):
            result = measuring.measure(benchmark, case)
        request.node.stash[RESULT] = result
        if request.config.option.give_way and measuring.claim and measuring.claim.asked:
            measuring.gave_way = measuring.claim.asked[0]
            request.session.shouldstop = plain(f"the board was asked for: {measuring.gave_way}")
        if result.status is not Status.MEASURED:
            pytest.fail(f"{result.status}: {cause(result)}", pytrace=False)

    return measure_case


@contextlib.contextmanager
def _ending(session: pytest.Session, measuring: MeasuringSession) -> Iterator[None]:
    """End the whole session on LabError: every further figure would be a guess."""
    try:
        yield
    except EvmperfError as error:
        session.shouldstop = measuring.fail(error)
        raise pytest.fail.Exception(str(error), pytrace=False) from None


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """End measuring on a Ctrl-C that came out as another exception."""
    if SESSION in item.config.stash and call.excinfo and was_ctrl_c(call.excinfo.value):
        raise KeyboardInterrupt from call.excinfo.value


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> Iterator[None]:
    """Turn what happened into exit status and outcome, before the reports are written, ours last.

    As the innermost wrapper it also keeps a report that cannot be written from taking the table
    and the sentence at the end with it.
    """
    measuring = session.config.stash.get(SESSION, None)
    if measuring is None:
        return (yield)
    if not measuring.status and exitstatus == pytest.ExitCode.INTERNAL_ERROR:  # the number of a broken lab
        session.exitstatus = ExitStatus.INTERNAL
    if session.config.option.collectonly:
        return (yield)
    measuring.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED and not measuring.lab_failure
    with measuring.signals.held():
        # After Ctrl-C fixtures are torn down later than this, and the board is what cannot wait.
        measuring.close()
        if exitstatus == ExitStatus.OK and session.items and all(map(_skips, session.items)):
            session.exitstatus = ExitStatus.NOTHING
        session.exitstatus = measuring.status or session.exitstatus
        measuring.await_taker()
        measuring.finish(int(session.exitstatus))
        try:
            yield
            with measuring.signals.skippable():
                measuring.write_report()
        except (OSError, EvmperfError) as error:
            measuring.lab_failure = measuring.lab_failure or f"reports cannot be written: {error}"
        finally:
            measuring.let_go()
        session.exitstatus = measuring.status or session.exitstatus
