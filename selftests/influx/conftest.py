"""One InfluxDB for all tests here, a bucket for each."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evmperf.influx.client import Store
from evmperf.influx.config import Config
from selftests.support.influxd import Influxd, running


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Influxd]:
    with running(tmp_path_factory.mktemp("influxd") / "data") as server:
        yield server


@pytest.fixture
def own_server(tmp_path) -> Iterator[Influxd]:
    """One that a test may break."""
    with running(tmp_path / "influxd") as server:
        yield server


@pytest.fixture
def bucket(server: Influxd) -> Config:
    return server.bucket()


@pytest.fixture
def store(bucket: Config) -> Iterator[Store]:
    with Store(bucket) as store:
        yield store


@pytest.fixture(autouse=True)
def no_settings(monkeypatch, tmp_path) -> None:
    """No test may meet the database of whoever runs it."""
    monkeypatch.setenv("EVMPERF_INFLUX_CONFIG", str(tmp_path / "none.toml"))
    for name in ("URL", "TOKEN", "ORG", "BUCKET"):
        monkeypatch.delenv(f"EVMPERF_INFLUX_{name}", raising=False)
