"""How fast the way to InfluxDB is."""

from __future__ import annotations

import http.client
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from evmperf.measure.runs import spool
from evmperf.measure.runs.spool import Spool
from evmperf.model.results import VARIANT
from evmperf.publish.influx import push as pushing
from evmperf.publish.influx.client import Config, Store
from evmperf.publish.influx.lines import RunLines
from selftests.instruments.speed.figures import Row, ratio
from selftests.support import spools
from selftests.support.influxd import Influxd, points, running

_RESULTS, _SAMPLES = 10_000, 20
_PUSHES = 3
_BATCH = 5000


def push() -> list[Row]:
    """Making a run's lines and sending them, against a bare HTTP client that posts them ready made."""
    ours, bare = [], []
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        base = Path(folder)
        run = _run(base)
        maker = RunLines(spool.read_run(run))
        text = [line for record in spool.read_records(run) for line in maker.of(record)]
        batches = ["\n".join(text[at : at + _BATCH]).encode() for at in range(0, len(text), _BATCH)]
        with running(base / "influxd") as server:
            for _ in range(_PUSHES):
                bare.append(_post(server, server.bucket(), batches))
                config = server.bucket()
                with Store(config) as store:
                    began = time.perf_counter()
                    list(pushing.push(store, [run]))
                    ours.append(time.perf_counter() - began)
                assert points(config, "samples") == _RESULTS * _SAMPLES
    return [ratio(f"push of {len(text)} points vs a raw client", ours, bare, 1.75)]


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


def _run(results: Path) -> Path:
    """A run in 500 series, each result a row of its own, its file written at once."""
    run = spools.a_run()
    folder = Spool(results, run).folder
    record = json.loads(spool.line(spools.a_result(run, 0, [12.345678 + n / 7 for n in range(_SAMPLES)])))
    with (folder / spool.RECORDS).open("w") as file:
        for number in range(_RESULTS):
            shift = number * 1000
            record |= {"case": f"case {number % 500}", "conditions": {VARIANT: str(number // 500)}}
            record["started_ns"] = run.started_ns + shift
            for repetition, sample in enumerate(record["samples"]):
                sample["time_ns"] = run.started_ns + shift + repetition
            file.write(json.dumps(record, separators=(",", ":")) + "\n")
    return folder
