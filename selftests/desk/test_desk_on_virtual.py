"""The desk at a serial line behind which are a real U-Boot and a real Linux: those of a virtual EVM."""

import contextlib
import json

import pytest

from selftests.support import programs, virtualbench
from selftests.support.deskboard import Terminal
from selftests.support.spools import cases_of
from selftests.support.stamps import Heard

pytestmark = pytest.mark.virtual_evm


def test_it_is_found_at_its_boot_loader_and_once_booted_measured_and_left_on(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))

    def desk(*words):
        with contextlib.closing(Terminal(bench.record.serial_port)) as line:
            return programs.evmperf("desk", "--port", line.path, "--results", tmp_path / "results", *words)

    with virtualbench.running("virtual", "desk") as bench:
        with contextlib.closing(Heard(bench)) as person:
            bench.on()
            person.stop_autoboot()
        assert "is at U-Boot's prompt" in desk().stderr
        with contextlib.closing(Heard(bench)) as person:
            person.send(b"boot\n")
            person.wait_for(b"login: ", within_s=300)
        done = desk("--yes", "-k", "openssl_throughput and aes-128-cbc and 16384")
        assert done.returncode == 0, done.stdout + done.stderr
        assert bench.status().power
    (run,) = (tmp_path / "results").glob("*/run.json")
    facts = json.loads(run.read_text())["facts"]
    assert facts["power"] == "none"
    assert float(facts["found"]["uptime_s"]) > 0
    assert [result.status for result in cases_of(run.parent)] == ["measured"]
