"""Runs in the formats of others: JUnit, and OpenMetrics (openmetrics.io)."""

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime

from evmperf.model.figures import figures
from evmperf.model.outlets import plain
from evmperf.model.results import Result, Status
from evmperf.model.run import Run
from evmperf.publish.report.verdicts import case_of, labels, suite_of, xml

Runs = Sequence[tuple[Run, Sequence[Result]]]


def junit(runs: Runs) -> str:
    """A suite a run, a test a case: its figures as properties, what failed as a failure."""
    root = ET.Element("testsuites")
    for run, results in runs:
        failed = sum(result.status is not Status.MEASURED for result in results)
        suite = suite_of(run.id, len(results), failed)
        suite.attrib |= {"timestamp": _time(run.started_ns)[:19], "hostname": plain(run.board)}
        root.append(suite)
        for result in results:
            case = case_of(suite, result.benchmark, result.case)
            case.set("time", f"{result.duration_s:.3f}")
            values = figures([result]).values()
            properties = ET.SubElement(case, "properties") if values else case
            for figure in values:
                value = plain(f"{figure.mean!r} {figure.unit}")
                ET.SubElement(properties, "property", name=plain(figure.key.metric), value=value)
            if result.status is not Status.MEASURED:
                failure_node = ET.SubElement(case, "failure", message=plain(", ".join(result.flaws())))
                failure_node.text = plain("\n".join(failure.message for failure in result.failures))
    return xml(root)


def openmetrics(runs: Runs) -> str:
    """A gauge of every figure's mean, stamped with the beginning of its run (seconds)."""
    lines = ["# TYPE evmperf_figure gauge", "# HELP evmperf_figure Mean of a figure in its unit."]
    for run, results in sorted(runs, key=lambda one: one[0].started_ns):
        of_run = {"lab": run.lab, "board": run.board, "run": run.id}
        for figure in figures(results).values():
            tags = labels(**of_run, **figure.key._asdict(), unit=figure.unit)
            lines.append(f"evmperf_figure{tags} {figure.mean!r} {run.started_ns / 1e9:.3f}")
    return "\n".join([*lines, "# EOF", ""])


FORMATS = {"junit": junit, "openmetrics": openmetrics}


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat()
