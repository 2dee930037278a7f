"""Boards in places: a real coordinator and exporter."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.lab.desk.finding import CheckOutcome, exit_status
from evmperf.model.errors import Kind
from evmperf.model.exits import ExitStatus
from selftests.doctor.test_doctor import check_bad, examine, outcomes
from selftests.support.placelab import PlaceLab

pytestmark = pytest.mark.many_sessions


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlaceLab]:
    lab = PlaceLab(tmp_path, {"one": {"board": "fake"}})
    for name in ("EVMPERF_LOCKS", "LG_COORDINATOR"):
        monkeypatch.setenv(name, lab.environment[name])
    monkeypatch.setenv("LG_HOSTNAME", "here")
    monkeypatch.setenv("LG_USERNAME", "me")
    yield lab
    lab.close()


def test_a_place(lab, tmp_path, monkeypatch):
    file = lab.board_file(tmp_path / "place.yaml")
    found = examine(file)
    check_bad(found["place"], Kind.USAGE, "set LG_PLACE to one of")

    monkeypatch.setenv("LG_PLACE", "one")
    found = examine(file)
    assert "one is held by here/me+doctor" in found["place"].text
    assert outcomes(found, ["coordinator", "console", "power switch", "U-Boot"]) == {CheckOutcome.OK}
    assert lab.holder("one") == ""  # it was given back
    assert not lab.boards["one"].is_on

    lab.client("one", "acquire", user="somebody")
    found = examine(file)
    check_bad(found["place"], Kind.USAGE, "one is held by .*/somebody")
    assert found["console"].text == "not checked: it needs place"
    assert exit_status(found.values()) is ExitStatus.USAGE

    monkeypatch.setenv("LG_PLACE", "two")
    check_bad(examine(file)["place"], Kind.USAGE, "two")
