"""A board of the guides whose place is a virtual EVM; nights of scripted boards are test_night.py's."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from evmperf.boards.board import ENV_DIR
from evmperf.measure.runs import spool
from selftests.support import programs, spools, virtualbench
from selftests.support.boardfiles import console_and_power
from selftests.support.placelab import PlaceLab

pytestmark = pytest.mark.virtual_evm


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PlaceLab]:
    """A lab whose place is a virtual EVM."""
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    with virtualbench.running("virtual", "night") as bench:

        class VirtualLab(PlaceLab):
            def _resources(self, name: str) -> dict[str, dict[str, object]]:
                return console_and_power(bench.record.serial_port, bench.record.power_port)

        lab = VirtualLab(tmp_path, {"evm-1": {}})
        yield lab
        lab.close()


def test_a_board_of_the_guides_in_a_place_is_booted_and_measured_with_its_own_file(
    lab: PlaceLab, tmp_path: Path
) -> None:
    """From which a virtual EVM differs by its boot medium alone."""
    text = (ENV_DIR / "am64x.yaml").read_text()
    assert text.count("medium: sd") == 1
    file = tmp_path / "am64x.yaml"
    file.write_text(text.replace("medium: sd", "medium: virtio"))
    words = ["--lg-env", file, "--profile", "quick", "-k", "default_rootfs or (emmc_raw_fio and 4k)"]
    words += ["--boots=1", f"--results={tmp_path / 'results'}"]
    done = programs.pytest(*words, environment=lab.environment, LG_PLACE="evm-1")
    folder = next((tmp_path / "results").glob("am64xx-hsevm-*"))
    boot, emmc = spools.cases_of(folder)
    assert boot.status == "measured", done.stdout
    assert len(boot.values("boot_time")) == 1
    run = spool.read_run(folder)
    assert run.place == "evm-1"
    assert run.facts.kernel
    # This place's board has no partition labelled evmperf, and nothing else may be overwritten.
    assert emmc.status == "failed"
    assert "/dev/disk/by-partlabel/evmperf does not exist" in emmc.failures[0].message
    assert done.returncode == 1
