"""JUnit, and pytest-html for those who ask for it with --html: figures as properties, everything
longer as links to the run's files.
"""

from collections.abc import Sequence
from typing import Any

import pytest

from evmperf.commands.app.measuring import MeasuringSession
from evmperf.measure.runs.spool import CONSOLE_LOG
from evmperf.model.outlets import plain
from evmperf.model.results import Result, as_rows
from pytest_evmperf.plugin import RESULT, SESSION, what_is_measured

_WIDTH = 160
"""Characters of the table in a page of pytest-html, and of what a board said."""
_TALK_LINES = 8


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Attach a measured case's figures and raw files to its test, and say how a failed one died."""
    report = yield
    session = item.config.stash.get(SESSION, None)
    result = item.stash.get(RESULT, None)
    if session and report.failed and result is None and what_is_measured(item) is None:
        session.failed_tests.add(item.nodeid)
    if session is None or report.when != "call":
        return report
    if report.failed and session.bench:
        report.sections.append(("the board", plain(_last_words(session, item))))
    if result:
        from evmperf.publish.report.shape import figure_texts  # noqa: PLC0415  # not needed to collect tests

        for metric, mean, folded in figure_texts(result):
            item.user_properties.append((plain(metric), plain(f"{mean} ({folded})")))
        if item.config.pluginmanager.hasplugin("html"):
            from pytest_html import extras  # noqa: PLC0415  # only where the plugin is

            links = [session.folder.absolute() / link for link in (*result.raw, "console.log")]
            shown = [extras.html(_html(None, [result]))]
            shown += [extras.url(link.as_uri(), name=link.name) for link in links]
            report.extras = [*getattr(report, "extras", []), *shown]
    return report


def _last_words(session: MeasuringSession, item: pytest.Item) -> str:
    """The power's state, the last commands of the test with their answers, or the console's last lines, and
    the file that has them all: ten lines at most.
    """
    assert session.bench
    power, _, *console = session.bench.post_mortem().splitlines()
    talk = getattr(getattr(item, "funcargs", {}).get("shell"), "talk", None) or console
    lines = [power, *(line[:_WIDTH] for line in [*talk][-_TALK_LINES:])]
    if (log := session.folder / CONSOLE_LOG).exists():
        lines.append(f"All that was said: {log}")
    return "\n".join(lines)


def _html(session: MeasuringSession | None, results: Sequence[Result], **values: object) -> str:
    """The table of results, for a session with what is known of it, else with what failed."""
    # Not needed to collect tests.
    from evmperf.publish.pages import look  # noqa: PLC0415
    from evmperf.publish.report.shape import text_table  # noqa: PLC0415

    values |= {"session": session, "results": results, "table": text_table(results, _WIDTH)}
    return look.render("publish/report/pytest.html.j2", **values)


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:
    """Name the report after what it is."""
    report.title = "evmperf run"


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str], session: Any) -> None:
    """How the run went, its figures and its plots, before the list of tests."""
    measuring = session.config.stash.get(SESSION, None)
    if measuring is None:
        return
    run = measuring.run
    facts = {**run.facts.to_dict(), "release": run.release, "os": run.os}
    from evmperf.publish.report import page  # noqa: PLC0415  # not needed to collect tests

    report = (measuring.folder / page.NAME).absolute().as_uri()
    prefix.append(_html(measuring, list(as_rows(lambda: measuring.results)), known=facts, report=report))
