"""Alert rules for Grafana, as it provisions them."""

from typing import Any

import yaml

from evmperf.grafana import parts, query
from evmperf.model.verdict import GoalWord
from evmperf.runs.history import RUN

_LATE_H = 30
"""Hours until a nightly run counts as missing: a day, plus a margin for a longer night."""
_NIGHTLY = "kind == 'nightly'"
"""Runs at a desk raise no alarm."""
CONTACT = "evmperf"


def text(language: str) -> str:
    """The provisioning file."""
    rules = (
        _rule(
            "evmperf-worse",
            "A figure became worse",
            _last("number(known(verdict_worse, 0))"),
            days=2,
            above=0,
            summary="{{ $labels.board }}: {{ $values.A }} figures of the last run are worse than their "
            "baseline",
        ),
        _rule(
            "evmperf-goal",
            "A goal is missed",
            _missed(),
            days=2,
            above=0,
            summary="{{ $labels.owner }}: {{ $labels.board }} misses {{ $labels.figure }}, "
            "{{ $labels.goal }}",
        ),
        _rule(
            "evmperf-silent",
            "A board did not report last night",
            _last("age_h(time)"),
            days=14,
            above=_LATE_H,
            summary="{{ $labels.board }}: the last nightly run began {{ $values.A }} hours ago",
        ),
    )
    policy = {"orgId": 1, "receiver": CONTACT}
    policy |= {"group_by": ["alertname", "board"], "group_wait": "1m", "repeat_interval": "1d"}
    group = {"orgId": 1, "name": "evmperf", "folder": "evmperf", "interval": "10m"}
    group["rules"] = parts.spoken(rules, language)
    return yaml.safe_dump(
        {"apiVersion": 1, "groups": [group], "contactPoints": [_contact()], "policies": [policy]},
        sort_keys=False,
    )


def _contact() -> dict[str, Any]:
    """The receivers; Grafana expands variables of its environment."""
    ways = {"email": {"addresses": "$EVMPERF_ALERT_EMAIL"}, "webhook": {"url": "$EVMPERF_ALERT_WEBHOOK"}}
    receivers = [
        {"uid": f"{CONTACT}-{kind}", "type": kind, "settings": settings} for kind, settings in ways.items()
    ]
    return {"orgId": 1, "name": CONTACT, "receivers": receivers}


def _missed() -> query.Query:
    figure = "benchmark + ' ' + case + ' ' + metric"
    missed = query.goals(_NIGHTLY).where(f"reached == {str(GoalWord.MISSED)!r}")
    return missed.select(board="board", owner="owner", figure=figure, goal="goal", Value="1.0")


def _last(figure: str) -> query.Query:
    """A figure of each board's last nightly run, as the names and numbers that Grafana's alerts need."""
    return query.points(RUN, _NIGHTLY).last("board").select(board="board", Value=figure)


def _rule(
    uid: str, title: str, asked: query.Query, *, days: int, above: float, summary: str
) -> dict[str, Any]:
    span = {"from": days * 86400, "to": 0}
    asked_for: dict[str, Any] = {"refId": "A", "query": asked.said()}
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
            {"refId": one["refId"], "relativeTimeRange": span, "datasourceUid": source, "model": one}
            for source, one in ((parts.SOURCE_UID, asked_for), ("__expr__", threshold))
        ],
    }
