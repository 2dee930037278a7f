"""Grafana's part in a query: its variables and its range, put in as text."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from selftests.support import spools
from selftests.support.influxd import flux

Values = Mapping[str, list[str]]
"""What is chosen, by variable."""

DAY = timedelta(days=1)
START = datetime.fromtimestamp(spools.START_NS / 1e9, UTC)


def interpolated(query, config, values, begin, end):
    """The text that Grafana sends; fails for a variable that the dashboard does not have."""
    query = re.sub(r"\$\{(\w+):regex\}", lambda m: _regex(values[m[1]]), query)
    query = re.sub(r"\$\{(\w+)\}", lambda m: values[m[1]][0], query)
    own = {
        "v.timeRangeStart": begin.isoformat().replace("+00:00", "Z"),
        "v.timeRangeStop": end.isoformat().replace("+00:00", "Z"),
        "v.windowPeriod": f"{max(int((end - begin).total_seconds() / _PIXELS), 1)}s",
        "v.defaultBucket": json.dumps(config.bucket),
    }
    for name, text in own.items():
        query = query.replace(name, text)
    assert not re.search(r"\bv\.\w|\$\{", query), query
    return query


_PIXELS = 1000


def _regex(values):
    """Grafana's format `regex`: escaped, several in brackets; the value of All stands as it is."""
    if values == [ALL]:
        return ALL
    escaped = [re.sub(r"[\\^$*+?.()|\[\]{}/]", r"\\\g<0>", value) for value in values]
    return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"


ALL = ".*"


def choose(dashboard, config, given, begin, end):
    """What the variables' own queries give, in their order; single ones take the first."""
    values: dict[str, list[str]] = {}
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "datasource":
            continue
        rows = flux(config, interpolated(variable["query"], config, values, begin, end))
        chosen = re.compile(variable.get("regex", "/.*/").strip("/"))
        found = sorted(row["_value"] for row in rows if chosen.search(row["_value"]))
        assert found, f"{dashboard['title']}: no {variable['name']}\n{variable['query']}"
        name = variable["name"]
        if name in given:
            assert set(given[name]) <= set(found), f"{given[name]} is not in {found}"
        values[name] = given.get(name, [ALL] if variable.get("allValue") else found)
    return values


def panels(dashboard):
    """All panels with queries, those of folded rows among them."""
    whole = [p for panel in dashboard["panels"] for p in (panel, *panel.get("panels", ()))]
    return [panel for panel in whole if panel.get("targets")]
