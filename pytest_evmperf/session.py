"""The hooks of a session that measures; a call without a test of evmperf's never registers them."""

import os
from collections.abc import Iterator
from types import TracebackType

import pytest

from evmperf.benchmarks import catalogue
from evmperf.boards.vocabulary import FEATURES
from evmperf.lab import guest
from evmperf.lab.keeping.claim import JOIN
from evmperf.model.ended import Ending
from evmperf.model.errors import EvmperfError, LabError, UsageError, meant, was_ctrl_c
from evmperf.model.exits import ExitStatus
from evmperf.model.limits import short_words
from evmperf.model.outlets import plain
from evmperf.model.replies import SessionEnded
from pytest_evmperf import options
from pytest_evmperf.plugin import SESSION, answer, needs_board, skips, what_is_measured
from pytest_evmperf.ticker import teller


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
    for sentence in guest.adapt_pytests(session.config.stash, measuring.board):
        teller(session.config)(sentence)
    own = any(map(needs_board, session.items))
    held = measuring.planned or own or (JOIN in os.environ and options.given(session.config).leave_out)
    junit = session.config.option.xmlpath == str(measuring.folder / "junit.xml")  # nobody's choice
    if not measuring.planned and junit and all(map(skips, session.items)):
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
        if log := config.stash.get(junit.xml_key, None):
            log.logfile = os.devnull  # what is being called is called although it is unregistered
        junit.pytest_unconfigure(config)


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """Say why nothing is measured: `-k` selects nothing, most often a typo, or the board lacks it."""
    keyword, sentence = config.option.keyword, ""
    if items and all(map(skips, items)):
        sentence = f"nothing can be measured: {'; '.join(sorted(set(map(skips, items))))}"
    elif keyword and not items:
        hint = meant(keyword, [*FEATURES, *catalogue.benchmarks()])
        sentence = f"-k {keyword} selects nothing{hint or '.'} Drivers: {', '.join(FEATURES)}. "
        sentence += "`evmperf benchmark list` names the benchmarks."
    if not sentence or SESSION not in config.stash:
        return []
    answer(config, SessionEnded(ending=Ending.WRONG, sentence=sentence))
    return [plain(short_words(sentence))]


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """End measuring on a Ctrl-C that came out as another exception."""
    if SESSION in item.config.stash and call.excinfo and was_ctrl_c(call.excinfo.value):
        raise KeyboardInterrupt from call.excinfo.value


@pytest.hookimpl(tryfirst=True)
def pytest_keyboard_interrupt(excinfo: pytest.ExceptionInfo[BaseException]) -> None:
    """Give each frame a line, which pytest's report needs: CPython 3.11 has none for a signal's exception
    between two lines.
    """
    frames: list[TracebackType] = []
    trace: TracebackType | None = excinfo.tb
    while trace:
        frames.append(trace)
        trace = trace.tb_next
    for one in reversed(frames):
        line = one.tb_lineno or one.tb_frame.f_code.co_firstlineno
        trace = TracebackType(trace, one.tb_frame, one.tb_lasti, line)
    if trace:
        excinfo.traceback = type(excinfo.traceback)(trace)


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
    broken = isinstance(measuring.error, LabError)
    measuring.interrupted = exitstatus == pytest.ExitCode.INTERRUPTED and not broken
    with measuring.signals.held():
        # After Ctrl-C fixtures are torn down later than this, and the board is what cannot wait.
        measuring.close()
        if exitstatus == ExitStatus.OK and session.items and all(map(skips, session.items)):
            session.exitstatus = ExitStatus.NOTHING
        judged = measuring.judge_boots()
        session.exitstatus = session.exitstatus or judged or ExitStatus.OK
        session.exitstatus = measuring.status or session.exitstatus
        measuring.finish(int(session.exitstatus))
        if not os.path.exists(measuring.folder):  # noqa: PTH110  # its name may be too long
            _write_nothing(session.config)
        try:
            yield
            with measuring.signals.skippable():
                measuring.write_report()
        except (OSError, EvmperfError) as error:
            measuring.fail(LabError(f"reports cannot be written: {error}"))
        finally:
            measuring.let_go()
        session.exitstatus = measuring.status or session.exitstatus
