"""What a person sees: what is being measured now, and the table at the end."""

import contextlib
import time
from typing import Any

import pytest

from evmperf.benchmarks import wording
from evmperf.model.concealing import concealed
from evmperf.model.ended import cause
from evmperf.model.outlets import plain
from evmperf.model.results import Status, as_rows
from pytest_evmperf.plugin import RESULT, SESSION, what_is_measured
from pytest_evmperf.ticker import Ticker

REPORTER = "terminalreporter"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _until(seconds: float) -> str:
    """The time of day in so many seconds, with the date unless it is today."""
    then, now = time.localtime(time.time() + seconds), time.localtime()
    return time.strftime("%H:%M" if then[:3] == now[:3] else "%Y-%m-%d %H:%M", then)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish(session: pytest.Session) -> None:
    """Say what is going to be measured, with what, and until when."""
    measuring = session.config.stash.get(SESSION, None)
    reporter = session.config.pluginmanager.getplugin(REPORTER)
    if measuring is None or reporter is None or measuring.claim is None:
        return
    image = concealed(measuring.request.image) or "the installed one"
    rest_s = measuring.forecast.rest_s()
    reporter.ensure_newline()
    reporter.write_line(
        plain(
            f"{measuring.board.name} ({measuring.board.file_name}), profile {measuring.run.profile}, "
            f"image: {image}"
        )
    )
    cases = len(measuring.planned)
    reporter.write_line(
        f"{cases} {'case' if cases == 1 else 'cases'}, about {_clock(rest_s)} (a guess until "
        f"the first are done), until {_until(rest_s)}"
    )


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> object:
    """Say what is measured, before, meanwhile and after."""
    session = item.config.stash.get(SESSION, None)
    reporter = item.config.pluginmanager.getplugin(REPORTER)
    what = what_is_measured(item)
    if session is None or reporter is None or what not in session.planned:
        return (yield)
    index, whole = session.planned.index(what), len(session.planned)
    number, width = index + 1, len(str(whole))
    began = time.monotonic()
    expected, rest = session.forecast.case_s(index), session.forecast.rest_s(index)
    passed = began - session.began
    reporter.ensure_newline()
    row = wording.case(what[0].name, str(what[1]))
    if shared := session.forecast.shared[index]:
        label = f"{row}: "
    else:
        label = ""
        reporter.write_line(
            f"[{number:>{width}}/{whole}] {session.board.name}  {what[0].name} {row}  "
            f"(about {_clock(expected)}; all: {_clock(passed)} of {_clock(passed + rest)}, "
            f"until {_until(rest)})"
        )
    if session.claim:
        session.claim.expect(session.expected_end())

    def sign() -> str:
        if session.person.asking:
            return ""
        passed = time.monotonic() - began
        over = int(passed) - int(expected)
        taken = f"{_clock(passed)} of {_clock(expected)}" if over <= 0 else f"over its time by {_clock(over)}"
        return f"{'':{width * 2 + 4}}{taken}: {session.activity}"

    with contextlib.closing(Ticker(sign)):
        outcome = yield
    result = item.stash.get(RESULT, None)
    if result:
        from evmperf.publish.report.shape import figure_texts  # noqa: PLC0415  # slow to import

        session.learn(index, result.duration_s)
        figures = ", ".join(f"{metric} {mean}" for metric, mean, _ in figure_texts(result))
        well = result.status is Status.MEASURED
        text = figures if well else f"{result.status.upper()}: {cause(result)}  {figures}"
        reporter.ensure_newline()
        reporter.write_line(
            plain(f"{'':{width * 2 + 4}}{label}{text}{'' if shared else f'  in {result.duration_s:.1f} s'}")
        )
    return outcome


def pytest_report_teststatus(report: pytest.TestReport, config: pytest.Config) -> object:
    """No dots between our lines."""
    if SESSION in config.stash and (report.when == "call" or report.skipped):
        return report.outcome, "", report.outcome.upper()
    return None


def pytest_sessionstart(session: pytest.Session) -> None:
    """Keep file names out of the progress lines."""
    reporter = session.config.pluginmanager.getplugin(REPORTER)
    if reporter and SESSION in session.config.stash:
        reporter.showfspath = False


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """The table of results, and one sentence on how it went."""
    session = config.stash.get(SESSION, None)
    if session is None or config.option.collectonly or session.claim is None:
        return
    if terminalreporter.verbosity < -1:  # the desk has an end of its own, also of Ctrl-C
        terminalreporter._report_keyboardinterrupt = lambda: None
        return
    terminalreporter.section(f"measured on {session.board.name}, profile {session.run.profile}")
    if session.results:
        # Slow to import, for the end only.
        from evmperf.judge.published import source  # noqa: PLC0415
        from evmperf.publish.report.shape import text_table  # noqa: PLC0415

        baseline = source.baseline(session.run)
        width = None if terminalreporter.isatty else 140 if baseline else 120
        terminalreporter.write(text_table(list(as_rows(lambda: session.results)), width, baseline))
    for sentence in session.outside:
        terminalreporter.write_line(plain(sentence))
    if session.results:
        busy_s, wall_s = session.busy_s(), time.monotonic() - session.began
        terminalreporter.write_line(
            f"Tools and boots took {_clock(busy_s)} of the session's {_clock(wall_s)}."
        )
    terminalreporter.write_line(f"Results: {session.folder}/ (report.html, results.jsonl)")
    if session.sent:
        terminalreporter.write_line(plain(session.sent))
    busy = session.run.facts.busy
    last = f"{session.ended().sentence} {busy}".rstrip()
    terminalreporter.write_line(plain(last), bold=True, red=bool(busy))
