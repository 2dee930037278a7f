"""A lab that goes from InfluxDB 2.7 to 2.10 keeps its runs, its token and its points."""

import pytest

from evmperf.publish.influx.client import Store
from evmperf.publish.influx.push import push
from evmperf.publish.influx.reader import InfluxRuns
from selftests.support import spools
from selftests.support.influxd import Influxd, built, points


@pytest.mark.skipif(not (built("2.7") and built("2.10")), reason="needs both: make influxd INFLUXD=2.7")
def test_the_newer_server_reads_what_the_older_one_kept(tmp_path, monkeypatch):
    run = spools.recorded(tmp_path / "results")
    server = Influxd(tmp_path / "influxd")
    try:
        monkeypatch.setenv("INFLUXD", "2.7")
        server.start()
        server.setup()
        config = server.bucket()
        with Store(config) as store:
            list(push(store, [run]))
        sent = points(config)
        server.stop()
        monkeypatch.setenv("INFLUXD", "2.10")
        server.start()
        with Store(config) as store:
            assert [entry.run.id for entry in InfluxRuns(store).runs()] == [run.name]
            list(push(store, [run]))
        assert points(config) == sent > 0
    finally:
        server.stop()
