"""The virtual EVM with a display and SATA disks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.virtual import client, envfile, image
from selftests.measuring.session import Pytest

pytestmark = pytest.mark.virtual_evm

VARIANT = "virtual-media"
DEADLINE_S = 600


@pytest.fixture(scope="module")
def board(own_state: Path) -> Iterator[client.Bench]:
    image.build(VARIANT, progress=print)
    bench = client.Bench(f"media{os.getpid()}")
    bench.start(VARIANT, serial_port=0, power_port=0)
    yield bench
    bench.stop()


def test_display_and_disks_are_measured(board: client.Bench, tmp_path: Path) -> None:
    env, ports = tmp_path / "media.yaml", board.ports
    envfile.write(envfile.source(VARIANT), env, serial_port=ports.serial, power_port=ports.power)
    select = "glmark2 or ((sata_ext4_1g or sata_vfat_1g) and 102400)"
    session = Pytest(env, tmp_path / "results", select)
    status = session.process.wait(DEADLINE_S)
    assert status == 0, session.log.read_text()
    results = session.measured()
    assert {result.status for result in results} == {"measured"}
    measured = {result.benchmark: result for result in results}
    assert set(measured) == {
        "glmark2", "sata_ext4_1g", "msata_ext4_1g", "sata_vfat_1g",
        "msata_vfat_1g",
    }  # fmt: skip
    assert measured["glmark2"].conditions["variant"] == "drawn by the CPU"
