"""The health of boards, out of files and tags that others may have written."""

import pytest

from evmperf.commands.night.health import Health, HealthState, Register
from evmperf.lab.keeping.wanted import HoldRecord, Wanted
from evmperf.measure.runs.spool import leave_out


@pytest.mark.parametrize("text", ["", "[]", "{", '{"desk": 3}', '{"desk": {"health": []}}', "\0"])
def test_a_damaged_file_is_named_and_stops_no_night(tmp_path, caplog, text):
    leave_out.cache_clear()
    (tmp_path / "health.json").write_text(text)
    register, desk = Register(tmp_path), Wanted("desk")
    assert register.of(desk) == Health()
    assert "health.json: is damaged" in caplog.text
    register.keep(desk, Health(HealthState.BAD, 2, "no boot"))
    assert register.all("") == {"desk": Health(HealthState.BAD, 2, "no boot")}


@pytest.mark.parametrize("number", ["²", "9" * 400, "-1", "1e9", "٣" * 100])
def test_tags_that_are_no_numbers_are_none(number):
    assert Health.of_tags({"health_failures": number}).failures == 0
    record = HoldRecord.of_place("one", "here/me+r", 1.0, {"evmperf_until": number}, "")
    assert record.until == 0.0
