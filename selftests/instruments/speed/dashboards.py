"""What a lab's year of dashboards costs InfluxDB: room, time, memory."""

import json
import os
import tempfile
import time
from datetime import timedelta
from pathlib import Path

from evmperf.publish.grafana.write import files
from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import push, waiting
from selftests.instruments.speed.figures import Row, met
from selftests.support import grafana, years
from selftests.support.influxd import flux, running

_BOARDS, _NIGHTS = 30, 90
_SYSTEMS = ("Linux", "RT-linux")
_TABLES = ("boot_time_mmcsd", "emmc_ext4", "emmc_raw_fio_1g", "lmbench")
_CHOSEN = {"driver": ["system"], "table": ["lmbench"], "metric": ["perf:us"]}
_OF_LMBENCH = ("evmperf-driver", "evmperf-compare")
_AT_ONCE = {
    "INFLUXD_STORAGE_CACHE_SNAPSHOT_WRITE_COLD_DURATION": "2s",
    "INFLUXD_STORAGE_COMPACT_FULL_WRITE_COLD_DURATION": "5s",
}
"""Settings with which the server packs what it got within seconds, not hours."""
_PACKED_S = 60


def panels():
    """All panels over 90 days of 30 boards with two runs a night: the server's time, memory and disk."""
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        base = Path(folder)
        names = [f"board-{number:02}" for number in range(_BOARDS)]
        years.write(base / "results", names, _NIGHTS, _TABLES, systems=_SYSTEMS)
        figures = sum(len(metrics) for *_, metrics in years.figures(_TABLES))
        samples = 3 * figures * _NIGHTS * len(_SYSTEMS) * _BOARDS
        os.environ.update(_AT_ONCE)
        with running(base / "influxd") as server:
            config = server.bucket()
            with Store(config) as store:
                points = sum(sent.points for sent in push(store, waiting(base / "results", config)))
            time.sleep(_PACKED_S)
            disk = sum(file.stat().st_size for file in (base / "influxd/engine/data").rglob("*.tsm"))
            # Panels are asked of a server that has the runs, not of one that just got a year at once.
            server.stop()
            server.start()
            costs = {
                title: _costs(server, config, json.loads(text))
                for title, text in files().items()
                if ".json" in title
            }
            peak = _status(server, "VmHWM") / 1024
    worst, seconds = max(((t, s) for one in costs.values() for t, s in one.items()), key=lambda item: item[1])
    fleet = sum(costs["grafana/fleet.json"].values())
    nights = f"of {_BOARDS} boards, {_NIGHTS} days"
    return [
        Row(
            f"InfluxDB's disk, {points} points",
            f"{disk / samples:.0f} B/sample",
            goal="< 120",
            met=met(disk / samples, 120),
        ),
        Row(f"Fleet {nights}: InfluxDB's CPU", f"{fleet:.2f} s", goal="< 5 s", met=met(fleet, 5)),
        Row(f"the dearest panel: {worst}", f"{seconds:.2f} s", goal="< 1.5 s", met=met(seconds, 1.5)),
        Row("InfluxDB's memory for all panels", f"{peak:.0f} MiB", goal="< 1024 MiB", met=met(peak, 1024)),
    ]


def _costs(server, config, dashboard):
    """The CPU seconds of each panel."""
    end = years.BEGAN + timedelta(days=_NIGHTS)
    span = end - timedelta(days=90), end
    given = _CHOSEN if dashboard["uid"] in _OF_LMBENCH else {}
    values = grafana.choose(dashboard, config, given, *span)
    costs = {}
    for panel in grafana.panels(dashboard):
        before = _cpu_s(server)
        for target in panel["targets"]:
            flux(config, grafana.interpolated(target["query"], config, values, *span))
        costs[f"{dashboard['title']}, {panel['title']}"] = _cpu_s(server) - before
    return costs


def _cpu_s(server):
    words = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def _status(server, name):
    """A number of the process's status, in KiB."""
    lines = Path(f"/proc/{server.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name))
