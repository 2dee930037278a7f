"""Runs in the formats of others: Bencher's BMF, KCIDB, JUnit, OpenMetrics.

Sources: bencher.dev/docs/reference/bencher-metric-format; kcidb-io's schema 5.3; openmetrics.io.
"""

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from evmperf.model.errors import Kind, UsageError
from evmperf.model.figures import figures
from evmperf.model.outlets import plain
from evmperf.model.results import Result, Status
from evmperf.model.run import Run
from evmperf.publish.report.verdicts import case_of, labels, suite_of, xml

Runs = Sequence[tuple[Run, Sequence[Result]]]

_BENCHER_NAME, _BENCHER_SLUG = 1024, 64
"""Characters of a benchmark's name and of a measure's."""
_ENDED = {Status.MEASURED: "DONE", Status.PARTIAL: "DONE", Status.REFUSED: "ERROR", Status.FAILED: "FAIL"}
_NOT_THE_BOARD = {Kind.LAB: "MISS", Kind.TOOL: "ERROR"}


def bmf(runs: Runs) -> str:
    """One run for `bencher run --adapter json`: a benchmark a case, a measure a metric with its
    unit, the mean between the lowest and the highest sample. Raises UsageError for several runs,
    which the format cannot tell apart.
    """
    if len(runs) != 1:
        raise UsageError(f"Bencher's format holds one run, not {len(runs)}: name it")
    found: dict[str, dict[str, dict[str, float]]] = {}
    ((run, results),) = runs
    for key, figure in figures(results).items():
        name = f"{run.board}/{key.benchmark}/{key.case}"[:_BENCHER_NAME]
        slug = _slug(f"{key.metric} {figure.unit}", "-")[:_BENCHER_SLUG].strip("-")
        said = {"value": figure.mean, "lower_value": figure.low, "upper_value": figure.high}
        known = {word: value for word, value in said.items() if value is not None}
        found.setdefault(name, {})[slug] = known
    return _json(found)


def kcidb(runs: Runs) -> str:
    """Runs as reports: a checkout and a build for what booted, a test a figure or failed case."""
    data: dict[str, Any] = {"version": {"major": 5, "minor": 3}}
    data |= {"checkouts": [], "builds": [], "tests": []}
    for run, results in runs:
        origin = {"origin": _slug(run.lab, "_") or "evmperf"}
        ident = f"{origin['origin']}:{plain(run.id)}"
        data["checkouts"].append({"id": ident, **origin, "tree_name": plain(run.release)})
        system = {"comment": plain(run.facts.kernel), "architecture": _slug(run.facts.machine, "_")}
        data["builds"].append({"id": ident, "checkout_id": ident, **origin, **system})
        where = {"comment": plain(run.board), "misc": {"place": run.place}}
        of_run = {"build_id": ident, **origin, "start_time": _time(run.started_ns), "environment": where}
        tests: list[dict[str, object]] = []
        for figure in figures(results).values():
            number = {"value": figure.mean, "unit": plain(figure.unit)}
            misc = {"low": figure.low, "high": figure.high, "count": figure.count}
            status = _ENDED[figure.result.status]
            tests.append({"path": _path(*figure.key), "status": status, "number": number, "misc": misc})
        tests += map(_failed, results)
        data["tests"] += [
            of_run | test | {"id": f"{ident}:{number}"} for number, test in enumerate(filter(None, tests))
        ]
    return _json(data)


def _failed(result: Result) -> dict[str, object]:
    """A case of which nothing was measured; {} for others."""
    if result.samples or result.published:
        return {}
    kinds = [_NOT_THE_BOARD.get(failure.kind, "FAIL") for failure in result.failures]
    return {
        "path": _path(result.benchmark, result.case),
        "status": kinds[-1] if kinds else _ENDED[result.status],
        "log_excerpt": plain("\n".join(failure.message for failure in result.failures)),
    }


def _path(*names: str) -> str:
    return ".".join(["evmperf", *(re.sub(r"[^a-zA-Z0-9_-]+", "_", name) for name in names)])


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
            known = figures([result]).values()
            properties = ET.SubElement(case, "properties") if known else case
            for figure in known:
                value = plain(f"{figure.mean!r} {figure.unit}")
                ET.SubElement(properties, "property", name=plain(figure.key.metric), value=value)
            if result.status is not Status.MEASURED:
                said = ET.SubElement(case, "failure", message=plain(", ".join(result.flaws())))
                said.text = plain("\n".join(failure.message for failure in result.failures))
    return xml(root)


def openmetrics(runs: Runs) -> str:
    """A gauge of every figure's mean, stamped with the beginning of its run (seconds)."""
    lines = ["# TYPE evmperf_figure gauge", "# HELP evmperf_figure Mean of a figure in its unit."]
    for run, results in sorted(runs, key=lambda one: one[0].started_ns):
        of_run = {"lab": run.lab, "board": run.board, "run": run.id}
        for figure in figures(results).values():
            told = labels(**of_run, **figure.key._asdict(), unit=figure.unit)
            lines.append(f"evmperf_figure{told} {figure.mean!r} {run.started_ns / 1e9:.3f}")
    return "\n".join([*lines, "# EOF", ""])


FORMATS = {"bmf": bmf, "kcidb": kcidb, "junit": junit, "openmetrics": openmetrics}


def _slug(text: str, joint: str) -> str:
    return re.sub(r"[^a-z0-9]+", joint, text.lower().replace("%", "percent")).strip(joint)


def _time(ns: int) -> str:
    return datetime.fromtimestamp(ns / 1e9, UTC).isoformat()


def _json(data: object) -> str:
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
