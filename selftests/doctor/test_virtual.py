"""`evmperf doctor` on a virtual EVM: everything that there is to check, and nothing is bad."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.commands.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support import virtualbench

pytestmark = [
    pytest.mark.virtual_evm,
    pytest.mark.skipif(os.geteuid() != 0, reason="the tester of a virtual EVM needs root"),
]


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The file of a virtual EVM of our own."""
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    with virtualbench.running("virtual", "doctor") as bench:
        yield virtualbench.board_file(bench, "virtual", tmp_path)
        assert not bench.status().power


def test_everything_is_well(file, tmp_path, capsys):
    console = tmp_path / "console.log"
    status = main(["doctor", "--json", "--console", str(console), str(file)])
    found = json.loads(capsys.readouterr().out)
    assert [entry for entry in found if entry["outcome"] in ("bad", "unchecked")] == []
    assert status == ExitStatus.OK
    outcome = {entry["step"]: entry["outcome"] for entry in found}
    good = "console,power switch,U-Boot,Linux,command line,root medium,tools,tester,meter"
    scratch = [f"scratch {driver}" for driver in ("emmc", "mmcsd", "pcie", "ufs", "usb")]
    assert {outcome[step] for step in [*good.split(","), *scratch]} == {"ok"}
    assert main(["doctor", "--replay", str(console)]) == ExitStatus.OK
    assert "boot 1" in capsys.readouterr().out
