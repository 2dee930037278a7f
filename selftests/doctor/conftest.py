"""A host with locks of its own, without settings or a place; board files of scripted boards there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from evmperf.lab.desk import examination
from selftests.support.boardfiles import GENERAL


@pytest.fixture(autouse=True)
def no_settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVMPERF_LOCKS", str(tmp_path))
    for name in ("LG_PLACE", "LG_COORDINATOR", "EVMPERF_TESTER", "EVMPERF_HOLD"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def quick(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Boards of threads answer at once, or never."""
    if not request.node.get_closest_marker("virtual_evm"):
        for name, seconds in {"_QUIET_S": 0.1, "_OFF_S": 0.5, "_ANSWER_S": 0.3}.items():
            monkeypatch.setattr(examination, name, seconds)


@pytest.fixture
def write_file(tmp_path: Path) -> Callable[..., Path]:
    """A function that writes a board file; keywords are its options."""

    def write(
        features: str, resources: dict[str, Any], drivers: dict[str, Any], **options: dict[str, Any]
    ) -> Path:
        said = {"board": GENERAL, "boot": {"medium": "sd"}, **options}
        main = {"features": features.split(), "options": said, "resources": resources, "drivers": drivers}
        imports = [f"evmperf.lab.{name}" for name in ("console", "meter", "shell", "strategy")]
        file = tmp_path / "scripted.yaml"
        data = {"imports": imports, "targets": {"main": main}}
        file.write_text(yaml.safe_dump(data, sort_keys=False))
        return file

    return write
