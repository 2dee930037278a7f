"""The board's file, the tests that the catalogue makes, and how a session ends."""

import contextlib
import functools
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.benchmark import Benchmark, Place
from evmperf.boards import board as boards
from evmperf.boards.console.powering import Person
from evmperf.boards.vocabulary import FEATURES
from evmperf.commands.app.measuring import MeasuringSession
from evmperf.commands.cli import arguments
from evmperf.measure import boardfile
from evmperf.model.concealing import learn
from evmperf.model.ended import Ending, cause
from evmperf.model.errors import BoardError, EvmperfError, LabError, UsageError, one_line
from evmperf.model.exits import ExitStatus
from evmperf.model.outlets import plain
from evmperf.model.places import project
from evmperf.model.replies import SessionEnded, WantedSession
from evmperf.model.results import Case, Status
from evmperf.publish.influx.client import TOKEN
from pytest_evmperf import options
from pytest_evmperf.ticker import aside, teller

if TYPE_CHECKING:
    from evmperf.lab.bench import LabgridBench

TESTS = project("tests")
"""What is measured when no path is given."""

Measure = Callable[[Benchmark, Case], None]

SESSION: pytest.StashKey[MeasuringSession] = pytest.StashKey()
RESULT: pytest.StashKey[Any] = pytest.StashKey()

_FIXTURE = "measuring"
"""What every test of evmperf's uses, of its catalogue or by another fixture."""
_TEST_FILE = re.compile(r"conftest\.py|test_.*\.py|.*_test\.py")
_NO_SUITES = {"venv", "node_modules", "build", "dist", "results"}
_SUITE_FILES = 20_000
"""Files that are looked at for a suite of the lab's own."""
_SEVERAL = (
    "-n (pytest-xdist) would measure one board from several processes at once: leave it "
    "out, and start one pytest for each board"
)


@pytest.hookimpl(wrapper=True)
def pytest_load_initial_conftests(parser: pytest.Parser) -> Iterator[None]:
    """Add evmperf's options when every conftest has added its own."""
    yield
    options.add(parser)


@pytest.hookimpl(wrapper=True)
def pytest_cmdline_main(config: pytest.Config) -> Iterator[Any]:
    """Tell the process that started this one how it ended."""
    try:
        status = yield
    except pytest.UsageError as error:
        answer(config, SessionEnded(ending=Ending.WRONG, sentence="; ".join(map(str, error.args))))
        raise
    measuring = config.stash.get(SESSION, None)
    if measuring and (
        measuring.status is ExitStatus.USAGE or status not in (ExitStatus.USAGE, ExitStatus.NOTHING)
    ):
        end = measuring.ended()
        run = measuring.run.id
        answer(config, SessionEnded(run=run, ending=end.ending, sentence=end.sentence))
    return status


def answer(config: pytest.Config, reply: SessionEnded) -> None:
    """Write the reply that `--answer` asks for."""
    if file := options.given(config).answer:
        try:
            file.write_bytes(msgspec.json.encode(reply))
        except OSError as error:
            print(f"--answer {file}: cannot be written ({error.strerror})", file=sys.stderr)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Begin a session where the call has evmperf's catalogue; all else is Labgrid's and the suite's own."""
    named = _env_file(config)
    if config.option.lg_env == "":
        raise pytest.UsageError("--lg-env is empty: name a board file or a board")
    if named and not os.path.exists(named):  # noqa: PTH110  # a name that is too long is no file, either
        try:
            config.option.lg_env = str(boards.find(named))
        except UsageError as error:
            if named == Path(named).stem:  # a board's name, which is evmperf's; Labgrid names a missing file
                raise pytest.UsageError(str(error)) from None
    if not _has_catalogue(config, named):
        return
    if getattr(config.option, "numprocesses", None) or hasattr(config, "workerinput"):
        raise pytest.UsageError(_SEVERAL)
    if config.args_source is config.ArgsSource.INVOCATION_DIR:
        # Outside a checkout no testpaths keeps pytest from collecting all that is below this folder.
        own = Path("tests")  # of a lab's own repository
        config.args = [str(TESTS), *([str(own)] if own.is_dir() and own.resolve() != TESTS else [])]
    elif options.given(config).catalogue:
        config.args = [str(TESTS), *config.args]
    config.option.importmode = "importlib"  # several folders may have a test_emmc.py
    learn(os.environ)
    begin(config)


def _env_file(config: pytest.Config) -> str:
    return config.option.lg_env or os.environ.get("LG_ENV") or ""


def _has_catalogue(config: pytest.Config, env_file: str) -> bool:
    """Whether the call measures evmperf's catalogue: it names it, or it has an env file and no tests."""
    if options.given(config).catalogue or any(map(_is_ours, config.args)):
        return True
    if not env_file or config.args_source is not config.ArgsSource.INVOCATION_DIR:
        return False
    folder = config.invocation_params.dir
    in_checkout = TESTS.parent == folder.resolve()
    return in_checkout or not _has_tests(folder) or boardfile.is_evmperfs(env_file)


def _is_ours(argument: str) -> bool:
    return Path(argument.partition("::")[0]).resolve().is_relative_to(TESTS)


def _has_tests(folder: Path) -> bool:
    """Whether pytest would find tests below a folder; one that is too large to be a suite has none."""
    seen = 0
    for _, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".") and name not in _NO_SUITES]
        seen += len(files)
        ours = {f"_{Path(name).stem}_test.py" for name in files}  # as `evmperf benchmark new` writes it
        if any(_TEST_FILE.fullmatch(name) for name in {*files} - ours):
            return True
        if seen > _SUITE_FILES:
            return False
    return False


def begin(config: pytest.Config) -> MeasuringSession | None:
    """The session of this call, begun with the board that `--lg-env` names; None without one."""
    session, named = config.stash.get(SESSION, None), _env_file(config)
    if session or not named:
        return session
    if hasattr(config, "workerinput"):
        raise pytest.UsageError(_SEVERAL)
    try:
        if file := options.given(config).answer:
            file.open("ab").close()
        board = boardfile.named(named, options.given(config).options_file)
        boardfile.check_variables(board.file)
        asked = arguments.filled(
            WantedSession, options.given(config), board=named, select=config.option.keyword
        )
        session = MeasuringSession(board, asked)
    except OSError as error:
        raise pytest.UsageError(f"--answer {error.filename}: cannot be written ({error.strerror})") from None
    except UsageError as error:
        raise pytest.UsageError(str(error)) from None
    config.option.lg_env = str(board.file)
    # What the lab starts for us (a virtual EVM, a tester's shell) has no use for the token.
    os.environ.pop(TOKEN, None)
    session.person = Person(functools.partial(aside, config))
    config.stash[SESSION] = session
    watching = contextlib.ExitStack()
    config.add_cleanup(watching.close)
    watching.enter_context(session.signals.watching())
    for name in ("session", "terminal", "report", "lava"):
        config.pluginmanager.import_plugin(f"pytest_evmperf.{name}")
    if not config.option.collectonly:  # of a session that begins later pytest has decided that already
        config.option.xmlpath = config.option.xmlpath or str(session.folder / "junit.xml")
    return session


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each case of each benchmark of the module's driver."""
    if not {"benchmark", "case", "measure", _FIXTURE} <= set(metafunc.fixturenames):
        return  # pytest-benchmark has a fixture of that name
    where = metafunc.definition
    driver = next((marker.args[0] for marker in where.iter_markers("lg_feature")), "")
    if not driver:
        raise pytest.UsageError(f"{where.path}: names no driver with pytest.mark.lg_feature")
    if driver not in FEATURES:
        raise pytest.UsageError(
            f"{where.path}: there is no driver {driver!r}; known are {', '.join(FEATURES)}"
        )
    session = begin(metafunc.config)
    profile = session.run.profile if session else options.given(metafunc.config).profile or "full"
    pairs = [
        (benchmark, case)
        for benchmark in catalogue.benchmarks().values()
        if benchmark.driver == driver
        for case in benchmark.cases(profile)
    ]
    ids = [f"{benchmark.name}-{case.label}" for benchmark, case in pairs]
    metafunc.parametrize(("benchmark", "case"), pairs, ids=ids)


@pytest.hookimpl(trylast=True)  # -k and -m have selected
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Order what is measured so that few power cycles do, and skip what the board cannot."""
    measured = {item: what for item in items if (what := what_is_measured(item))}
    if not any(_FIXTURE in getattr(item, "fixturenames", ()) for item in items):
        return
    session = begin(config)
    if session is None:
        if config.option.collectonly or not measured:
            return
        raise _no_board()
    left_out = set(options.given(config).leave_out)
    if gone := [item for item, (table, case) in measured.items() if f"{table.name}/{case}" in left_out]:
        config.hook.pytest_deselected(items=gone)
        items[:] = [item for item in items if item not in gone]
    places = list(Place)
    # Sorting is stable: within one place, tests stay in the order of the files.
    items.sort(key=lambda item: places.index(measured[item][0].place) if item in measured else -1)
    for item, (benchmark, case) in measured.items():
        if benchmark.driver in session.board.features:  # Labgrid knows the file's list alone
            item.own_markers[:] = [marker for marker in item.own_markers if marker.name != "skip"]
        if reason := benchmark.unsupported(session.board, case):
            # Before Labgrid's, which knows the missing feature only.
            item.add_marker(pytest.mark.skip(reason=reason), append=False)


def _no_board() -> pytest.UsageError:
    names = ", ".join(boards.names())
    return pytest.UsageError(
        f"no board: name one with --lg-env FILE. Known boards: {names}. The virtual EVM is virtual.yaml."
    )


def skips(item: pytest.Item) -> str:
    """Why an item is skipped, "" if it is not."""
    return next((str(mark.kwargs.get("reason", "skipped")) for mark in item.iter_markers("skip")), "")


def needs_board(item: pytest.Item) -> bool:
    """Whether a test uses the board, to measure a case or for a lab's own purpose, and is not skipped."""
    return _FIXTURE in getattr(item, "fixturenames", ()) and not any(item.iter_markers("skip"))


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
    session = begin(request.config)
    if session is None:
        raise _no_board()
    try:
        with _ending(request.session, session):
            session.open(_target(request, session.board.target), teller(request.config))
            if (state := request.config.option.lg_initial_state) and session.bench:
                _force(session.bench, state)
        yield session
    finally:
        session.close()


def _force(bench: "LabgridBench", state: str) -> None:
    """Take the board to be at the state that `--lg-initial-state` names; raises what names the option."""
    try:
        bench.force(state)
    except BoardError as error:
        raise LabError(
            f"{error}; --lg-initial-state {state} says that the board is there: leave it out otherwise"
        ) from error


def _target(request: pytest.FixtureRequest, name: str) -> Any:
    """Labgrid's target; raises LabError when the coordinator or the place is not available."""
    try:
        return request.getfixturevalue("env").get_target(name)
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
            if reason := measuring.absent(benchmark, case):
                pytest.skip(plain(reason))
            result = measuring.measure(benchmark, case)
        request.node.stash[RESULT] = result
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
