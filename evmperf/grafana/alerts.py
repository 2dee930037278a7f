"""Alert rules for Grafana, as it provisions them."""

from typing import Any

import yaml

from evmperf.grafana import flux, parts
from evmperf.model.verdict import GoalWord
from evmperf.runs.measurements import RUN

_LATE_H = 30
"""Hours until a nightly run counts as missing: a day, plus a margin for a longer night."""
_NIGHTLY = f"{flux.text('nightly')} == r.kind"
"""Desk runs raise no alarm."""
_ONE_TABLE = '|> group() |> keep(columns: ["board", "_value"])'
"""Grafana reads one table of names and numbers as one number per name. It drops several tables
without times, as Flux makes of groups, and reports no data.
"""
CONTACT = "evmperf"


def text() -> str:
    """The provisioning file."""
    group = {
        "orgId": 1,
        "name": "evmperf",
        "folder": "evmperf",
        "interval": "10m",
        "rules": [_worse(), _missed(), _silent()],
    }
    return yaml.safe_dump(
        {"apiVersion": 1, "groups": [group], "contactPoints": [_contact()], "policies": [_policy()]},
        sort_keys=False,
    )


def _contact() -> dict[str, Any]:
    """The receivers; Grafana expands variables of its environment."""
    ways = {"email": {"addresses": "$EVMPERF_ALERT_EMAIL"}, "webhook": {"url": "$EVMPERF_ALERT_WEBHOOK"}}
    receivers = [
        {"uid": f"{CONTACT}-{kind}", "type": kind, "settings": settings} for kind, settings in ways.items()
    ]
    return {"orgId": 1, "name": CONTACT, "receivers": receivers}


def _policy() -> dict[str, Any]:
    return {
        "orgId": 1,
        "receiver": CONTACT,
        "group_by": ["alertname", "board"],
        "group_wait": "1m",
        "repeat_interval": "1d",
    }


def _worse() -> dict[str, Any]:
    query = (
        f'{flux.points(RUN, _NIGHTLY)}\n|> group(columns: ["board"])\n'
        '|> sort(columns: ["_time"]) |> tail(n: 1)\n'
        "|> map(fn: (r) => ({board: r.board, "
        "_value: if exists r.verdict_worse then float(v: r.verdict_worse) else 0.0}))\n"
        f"{_ONE_TABLE}"
    )
    return _rule(
        "evmperf-worse",
        "A figure became worse",
        query,
        days=2,
        above=0,
        summary="{{ $labels.board }}: {{ $values.A }} figures of the last run are worse than their baseline",
    )


def _missed() -> dict[str, Any]:
    query = (
        f"{flux.last_goals(_NIGHTLY)}\n"
        f"|> filter(fn: (r) => r.reached == {flux.text(GoalWord.MISSED)})\n"
        '|> map(fn: (r) => ({board: r.board, owner: r.owner, figure: r.benchmark + " " + r.case + " " + '
        "r.metric, goal: r.goal, _value: 1.0}))\n|> group()"
    )
    return _rule(
        "evmperf-goal",
        "A goal is missed",
        query,
        days=2,
        above=0,
        summary="{{ $labels.owner }}: {{ $labels.board }} misses {{ $labels.figure }}, {{ $labels.goal }}",
    )


def _silent() -> dict[str, Any]:
    query = (
        f"{flux.points(RUN, _NIGHTLY)}\n"
        '|> group(columns: ["board"]) |> sort(columns: ["_time"]) |> tail(n: 1)\n'
        "|> map(fn: (r) => ({board: r.board, "
        "_value: float(v: int(v: now()) - int(v: r._time)) / 3600000000000.0}))\n"
        f"{_ONE_TABLE}"
    )
    return _rule(
        "evmperf-silent",
        "A board did not report last night",
        query,
        days=14,
        above=_LATE_H,
        summary="{{ $labels.board }}: the last nightly run began {{ $values.A }} hours ago",
    )


def _rule(uid: str, title: str, query: str, *, days: int, above: float, summary: str) -> dict[str, Any]:
    threshold = {
        "type": "threshold",
        "refId": "B",
        "expression": "A",
        "datasource": {"type": "__expr__", "uid": "__expr__"},
        "conditions": [{"evaluator": {"type": "gt", "params": [above]}}],
    }
    return {
        "uid": uid,
        "title": title,
        "condition": "B",
        "for": "0s",
        "noDataState": "OK",
        "execErrState": "Error",
        "annotations": {"summary": summary},
        "labels": {"source": "evmperf"},
        "data": [
            {
                "refId": "A",
                "relativeTimeRange": {"from": days * 86400, "to": 0},
                "datasourceUid": parts.SOURCE_UID,
                "model": {"refId": "A", "query": query},
            },
            {
                "refId": "B",
                "relativeTimeRange": {"from": days * 86400, "to": 0},
                "datasourceUid": "__expr__",
                "model": threshold,
            },
        ],
    }
