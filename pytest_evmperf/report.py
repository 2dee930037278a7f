"""JUnit: figures as properties; pytest-html (with --html): a link to the run's page."""

from typing import Any

import pytest

from evmperf.model.outlets import html, plain
from evmperf.report.table import result_rows
from pytest_evmperf.plugin import RESULT
from pytest_evmperf.session import SESSION


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Attach a measured case's figures to its test, and say how a failed one died."""
    report = yield
    session = item.config.stash.get(SESSION, None)
    result = item.stash.get(RESULT, None)
    if session is None or report.when != "call":
        return report
    if report.failed and session.bench:
        report.sections.append(("post-mortem", plain(session.bench.post_mortem())))
    if result:
        for row in result_rows(result):
            figure = f"{row.mean} {row.unit} (min {row.low}, max {row.high}, n {row.count})"
            item.user_properties.append((plain(row.metric), plain(figure)))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str], session: Any) -> None:
    """How the run went, and the way to its figures, before the list of tests."""
    measuring = session.config.stash.get(SESSION, None)
    if measuring is None:
        return
    prefix.append(f"<p><strong>{html(measuring.ended().sentence)}</strong></p>")
    from evmperf.report import page  # noqa: PLC0415  # not needed to collect tests

    report = (measuring.folder / page.NAME).absolute().as_uri()
    prefix.append(f'<p><a href="{html(report)}">The run in tables and plots</a></p>')
