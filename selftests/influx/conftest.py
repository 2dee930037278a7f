"""A bucket for each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evmperf.publish.influx.client import Config, Store
from selftests.support.influxd import Influxd


@pytest.fixture
def bucket(influxd: Influxd) -> Config:
    return influxd.bucket()


@pytest.fixture
def store(bucket: Config) -> Iterator[Store]:
    with Store(bucket) as store:
        yield store


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch, bucket: Config) -> Config:
    """The bucket, which is that of this process's settings."""
    for name in ("url", "token", "org", "bucket"):
        monkeypatch.setenv(f"EVMPERF_INFLUX_{name.upper()}", getattr(bucket, name))
    return bucket
