"""JUnit, and pytest-html for those who ask for it with --html: figures as properties, everything
longer as links to the run's files.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from evmperf.model.outlets import html, plain
from evmperf.model.results import Result
from evmperf.report.table import result_rows
from pytest_evmperf.plugin import RESULT, SESSION

_FACTS = ("release", "os", "kernel", "uboot", "root_file_system", "model", "evmperf_revision")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Attach a measured case's figures and raw files to its test, and say how a failed one died."""
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
        report.extras = [*getattr(report, "extras", []), *_extras(item.config, result)]
    return report


def _extras(config: pytest.Config, result: Result) -> list[Any]:
    if not config.pluginmanager.hasplugin("html"):
        return []
    from pytest_html import extras  # noqa: PLC0415  # only where the plugin is

    failures = "".join(
        f"<li>{html(f'{failure.kind}: {failure.step} {failure.message}')}</li>" for failure in result.failures
    )
    folder = config.stash[SESSION].folder.absolute()
    links = [*result.raw, "console.log"]
    return [
        extras.html(f"<table>{_table([result])}</table><ul>{failures}</ul>"),
        *(extras.url((folder / link).as_uri(), name=Path(link).name) for link in links),
    ]


def _table(results: Iterable[Result]) -> str:
    """Rows of an HTML table: a line for each figure."""
    lines = ["".join(f"<th>{heading}</th>" for heading in _COLUMNS.values())]
    for result in results:
        for row in result_rows(result):
            lines.append("".join(f"<td>{html(str(getattr(row, name)))}</td>" for name in _COLUMNS))
    return "".join(f"<tr>{line}</tr>" for line in lines)


_COLUMNS = {name: name for name in ("benchmark", "case", "metric", "mean", "unit")} | {
    **{"low": "min", "high": "max", "count": "n", "note": "note"}
}
"""Headings by field of a row."""


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
    prefix.append(f"<p><strong>{html(measuring.ended().sentence)}</strong></p>")
    known = {**run.facts.to_dict(), "release": run.release, "os": run.os}
    facts = [f"{name}: {known[name]}" for name in _FACTS if known.get(name)]
    about = [f"run {run.id}", f"profile {run.profile}", *facts]
    prefix.append(f"<p>{html('; '.join(about))}</p>")
    from evmperf.report import page  # noqa: PLC0415  # not needed to collect tests

    report = (measuring.folder / page.NAME).absolute().as_uri()
    prefix.append(f'<p><a href="{html(report)}">The run in tables and plots</a></p>')
    prefix.append(f"<details open><summary>Figures</summary><table>{_table(measuring.results)}")
    prefix.append("</table></details>")
