"""How fast and how small the way to InfluxDB, the report and the history are."""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evmperf.influx.client import Store
from evmperf.influx.config import Config
from evmperf.influx.lines import Lines
from evmperf.influx.push import RunPush
from evmperf.model.run import SCHEMA
from evmperf.runs import spool
from evmperf.runs.spool import Spool
from selftests.speed.figures import ROOT, Row, met, seconds
from selftests.support import spools
from selftests.support.influxd import Influxd, points, running

_FORMATTED = 200_000
_RESULTS = 1_000_000
_PUSHES = 3
_BATCH = 5000


def lines() -> list[Row]:
    """Line protocol: samples a second on one core, by processor time."""
    with tempfile.TemporaryDirectory(prefix="evmperf-bench-") as folder:
        run = _run(Path(folder), _FORMATTED // 20, samples=20)
        maker = Lines(spool.read_run(run))
        records = list(spool.read_records(run))
        formatted, whole = [], []
        for _ in range(5):
            began = time.process_time()
            for record in records:
                list(maker.of(record))
            formatted.append(_FORMATTED / (time.process_time() - began))
            began = time.process_time()
            for record in spool.read_records(run):
                list(maker.of(record))
            whole.append(_FORMATTED / (time.process_time() - began))
    rate = statistics.median(formatted)
    return [
        Row(
            f"line protocol formatted, n {len(formatted)}", f"{rate / 1e3:.0f} k samples/s",
            goal=">= 500 k", met=met(-rate, -500e3),
        ),
        Row("  with reading the spool", f"{statistics.median(whole) / 1e3:.0f} k samples/s"),
    ]  # fmt: skip


def push() -> list[Row]:
    """Sending a run, against a bare HTTP client that posts the same lines, ready made."""
    ours, bare = [], []
    with tempfile.TemporaryDirectory(prefix="evmperf-bench-") as folder:
        base = Path(folder)
        run = _run(base, 10_000, samples=20)
        maker = Lines(spool.read_run(run))
        text = [line for record in spool.read_records(run) for line in maker.of(record)]
        batches = ["\n".join(text[at : at + _BATCH]).encode() for at in range(0, len(text), _BATCH)]
        with running(base / "influxd") as server:
            for _ in range(_PUSHES):
                bare.append(_post(server, server.bucket(), batches))
                config = server.bucket()
                with Store(config) as store:
                    began = time.perf_counter()
                    RunPush.of(store, run, again=True).send()
                    ours.append(time.perf_counter() - began)
                assert points(config, "sample") == 200_000
    mine, theirs = statistics.median(ours), statistics.median(bare)
    share = theirs / mine
    return [
        Row(
            f"push of {len(text)} points, n {_PUSHES}", seconds(mine), seconds(theirs),
            f"{share:.2f} of its rate", ">= 0.8", met(-share, -0.8),
        )
    ]  # fmt: skip


def _post(server: Influxd, config: Config, batches: Sequence[bytes]) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    path = f"/api/v2/write?org={config.org}&bucket={config.bucket}&precision=ns"
    began = time.perf_counter()
    for batch in batches:
        connection.request("POST", path, batch, {"Authorization": f"Token {config.token}"})
        reply = connection.getresponse()
        reply.read()
        assert reply.status == 204
    took = time.perf_counter() - began
    connection.close()
    return took


def memory() -> list[Row]:
    """Push, report and history of a run with 10^6 results: their largest resident memory."""
    with tempfile.TemporaryDirectory(prefix="evmperf-bench-") as folder:
        base = Path(folder)
        run = _run(base / "results", _RESULTS, samples=1)
        with running(base / "influxd") as server:
            config = server.bucket()
            named = {
                f"EVMPERF_INFLUX_{name.upper()}": getattr(config, name)
                for name in ("url", "token", "org", "bucket")
            }
            shown = ["history", "made-up", "emmc_ext4", "write_throughput", "--case=case 7"]
            rows = [
                _resident("push", ["push", str(run)], named),
                _resident("report", ["report", str(run)], {}),
                _resident("history from InfluxDB", shown, named),
                _resident("history from spools", [*shown, f"--results={run.parent}"], {}),
            ]
            assert points(config, "result") == _RESULTS
    return rows


def _resident(what: str, arguments: list[str], named: dict[str, str]) -> Row:
    began = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-m", "evmperf.cli.main", *arguments],
        cwd=ROOT,
        env={**os.environ, **named},
        stdout=subprocess.DEVNULL,
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise RuntimeError(f"{what} ended with {process.returncode}")
    took, megabytes = time.perf_counter() - began, used.ru_maxrss / 1024
    return Row(
        f"10^6 results: {what}", f"{megabytes:.0f} MiB", figure=seconds(took),
        goal="< 150 MiB", met=met(megabytes, 150),
    )  # fmt: skip


def report() -> list[Row]:
    """The report of a run of the whole catalogue, as a process of its own."""
    took = []
    with tempfile.TemporaryDirectory(prefix="evmperf-bench-") as folder:
        run = spools.of_catalogue(Path(folder))
        for _ in range(5):
            began = time.perf_counter()
            command = [sys.executable, "-m", "evmperf.cli.main", "report", str(run)]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
            took.append(time.perf_counter() - began)
        size = (run / "report.html").stat().st_size / 1e6
    median = statistics.median(took)
    return [
        Row(
            f"report of a full run, n {len(took)}", seconds(median), figure=f"{size:.2f} MB",
            goal="< 2 s", met=met(median, 2.0),
        )
    ]  # fmt: skip


def _run(results: Path, count: int, samples: int) -> Path:
    """A run of so many results, its file written at once."""
    run = spools.a_run()
    folder = Spool(results, run).folder
    result = spools.a_result(run, 0, [12.345678 + n / 7 for n in range(samples)])
    record = {"schema": SCHEMA, "record": "result", **_plain(result)}
    with (folder / spool.RECORDS).open("w") as file:
        for number in range(count):
            shift = number * 1000
            record["case"] = f"case {number % 500}"
            record["started_ns"] = run.started_ns + shift
            for repetition, sample in enumerate(record["samples"]):
                sample["time_ns"] = run.started_ns + shift + repetition
            file.write(json.dumps(record) + "\n")
    return folder


def _plain(result: object) -> dict[str, object]:
    plain: dict[str, object] = json.loads(json.dumps(vars(result), default=vars))
    return plain
