"""A host with locks of its own, without settings or a place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from evmperf.lab.desk import examination


@pytest.fixture(scope="module", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("host")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_LOCKS", str(folder))
        yield


@pytest.fixture(autouse=True)
def no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LG_PLACE", "LG_COORDINATOR", "EVMPERF_TESTER", "EVMPERF_HOLD"):
        monkeypatch.delenv(name, raising=False)
    for name in ("URL", "TOKEN", "ORG", "BUCKET"):
        monkeypatch.delenv(f"EVMPERF_INFLUX_{name}", raising=False)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards of threads answer at once, or never."""
    if not request.node.get_closest_marker("virtual_evm"):
        monkeypatch.setattr(examination, "_QUIET_S", 0.1)
        monkeypatch.setattr(examination, "_OFF_S", 0.5)
        monkeypatch.setattr(examination, "_ANSWER_S", 0.3)
