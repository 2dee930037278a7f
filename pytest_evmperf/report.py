"""pytest-html and JUnit: figures as properties, raw output and plots as files beside the report."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest

from evmperf.model import Result, Status
from evmperf.plot import boot_phases
from evmperf.table import result_rows
from pytest_evmperf.plugin import RESULT
from pytest_evmperf.session import SESSION, Session


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Attach a measured case's figures, plots and raw files to its test."""
    report = yield
    session = item.config.stash.get(SESSION, None)
    result = item.stash.get(RESULT, None)
    if session is None or report.when != "call":
        return report
    if report.failed and session.bench:
        report.sections.append(("post-mortem", session.bench.post_mortem()))
    if result:
        for row in result_rows(result):
            report.user_properties.append(
                (f"{row.metric}", f"{row.mean} {row.unit} (min {row.low}, max {row.high}, "
                                  f"n {row.count})")
            )  # fmt: skip
        report.extras = [*getattr(report, "extras", []), *_extras(item.config, session, result)]
    return report


def _extras(config: pytest.Config, session: Session, result: Result) -> list[Any]:
    if not config.pluginmanager.hasplugin("html"):
        return []
    from pytest_html import extras  # noqa: PLC0415  # only where the plugin is

    rows = "".join(
        f"<tr><td>{html.escape(row.metric)}</td><td>{row.mean}</td><td>{html.escape(row.unit)}</td>"
        f"<td>{row.low}</td><td>{row.high}</td><td>{row.count}</td>"
        f"<td>{html.escape(row.note)}</td></tr>"
        for row in result_rows(result)
    )
    head = "<tr><th>metric</th><th>mean</th><th>unit</th><th>min</th><th>max</th><th>n</th></tr>"
    failures = "".join(
        f"<li>{html.escape(failure.kind)}: {html.escape(failure.step)} "
        f"{html.escape(failure.message)}</li>"
        for failure in result.failures
    )
    attached = [extras.html(f"<table>{head}{rows}</table><ul>{failures}</ul>")]
    plot = _boot_plot(session, result)
    if plot:
        attached.append(extras.html(f'<img src="{plot}" alt="phases of every boot cycle">'))
    attached += [extras.url(name, name=Path(name).name) for name in result.raw]
    attached.append(extras.url("console.log", name="console.log"))
    return attached


def _boot_plot(session: Session, result: Result) -> str:
    """Draw the boot cycles of a result; returns the plot's name below the run, "" for none."""
    cycles: dict[int, dict[str, float]] = {}
    for sample in result.samples:
        cycles.setdefault(sample.repetition, {})[sample.metric] = sample.value
    if result.driver != "boot" or not cycles:
        return ""
    name = f"{result.benchmark}-{result.case}.svg"
    title = f"{session.board.name}: {result.case}, {result.status}"
    try:
        boot_phases([cycles[key] for key in sorted(cycles)], title, session.folder / name)
    except OSError:
        return ""  # a full disk ends the session with its own sentence
    return name


@pytest.hookimpl(optionalhook=True)
def pytest_html_report_title(report: Any) -> None:
    """Name the report after what it is."""
    report.title = "evmperf run"


@pytest.hookimpl(optionalhook=True)
def pytest_html_results_summary(prefix: list[str], session: Any) -> None:
    """The verdict of the run, before everything else."""
    measuring = session.config.stash.get(SESSION, None)
    if measuring:
        status = Status.MEASURED
        done = sum(result.status is status for result in measuring.results)
        prefix.append(f"<p><strong>{html.escape(measuring.sentence())}</strong></p>")
        prefix.append(
            f"<p>{html.escape(measuring.board.name)}, profile {measuring.profile}, "
            f"run {html.escape(measuring.run.id)}, {done} cases measured</p>"
        )
