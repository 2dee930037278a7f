"""Two virtual EVMs in places: a night, the same measured by single sessions, and a board of the guides."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import client, image

from evmperf.benchmarks import catalogue
from evmperf.boards import yamlfile
from evmperf.boards.board import ENV_DIR
from evmperf.measure.runs import spool
from selftests.support import programs, spools
from selftests.support.boardfiles import console_and_power
from selftests.support.placelab import PlaceLab

pytestmark = pytest.mark.virtual_evm

SELECTION = "default_rootfs"


class VirtualLab(PlaceLab):
    """A lab whose places are virtual EVMs."""

    def __init__(self, folder: Path, benches: dict[str, client.LabClient]) -> None:
        self.benches = benches
        super().__init__(folder, {name: {} for name in benches})

    def _resources(self, name: str) -> dict[str, dict[str, object]]:
        ports = self.benches[name].record
        return console_and_power(ports.serial_port, ports.power_port)


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[VirtualLab]:
    folder = tmp_path_factory.mktemp("lab")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVMPERF_STATE", str(folder / "state"))
        image.build("virtual", progress=print)
        benches = {f"evm-{n}": client.LabClient(f"night{n}-{os.getpid()}") for n in (1, 2)}
        try:
            for bench in benches.values():
                bench.start("virtual", serial_port=0, power_port=0)
            lab = VirtualLab(folder, benches)
            lab.environment["PYTEST_ADDOPTS"] = "--boots=1"  # what is measured is the same with one
            try:
                yield lab
            finally:
                lab.close()
        finally:
            for bench in benches.values():
                bench.stop()


def board_file(folder: Path) -> Path:
    """virtual.yaml with a place instead of its wires."""
    data = yamlfile.read(ENV_DIR / "virtual.yaml")
    main = data["targets"]["main"]
    main["features"] = ["boot"]
    main["options"]["board"].pop("virtual")  # it is the lab's here, not this machine's to start
    main["resources"] = {"RemotePlace": {"name": "@PLACE@"}}
    main["drivers"].pop("ScpiMeterDriver", None)
    text = yaml.safe_dump(data, sort_keys=False)
    path = folder / "place.yaml"
    path.write_text(text.replace("name: '@PLACE@'", "name: !template $LG_PLACE"))
    return path


def figures(folder: Path) -> list[tuple[object, ...]]:
    """What every boot of a run must have measured; a busy host may stamp the other marks late."""
    return [
        (r.benchmark, r.version, r.case, str(r.params), sample.metric, sample.unit, sample.repetition)
        for r in spools.cases_of(folder)
        for sample in r.samples
        if catalogue.benchmark(r.benchmark).metric(sample.metric).required
    ]


def test_a_night_measures_what_single_sessions_measure(lab: VirtualLab, tmp_path: Path) -> None:
    file, results = board_file(tmp_path), tmp_path / "results"
    plan = tmp_path / "two.yaml"
    jobs = [{"board": str(file), "place": p, "benchmarks": SELECTION} for p in lab.benches]
    plan.write_text(yaml.safe_dump({"boards": jobs, "until": "20m", "guide": False}))
    words = ["night", plan, "--results", results]
    done = programs.evmperf(*words, environment=lab.environment)
    assert done.returncode == 0, done.stdout + done.stderr
    nightly = sorted(path.parent for path in results.glob("*/run.json"))
    assert {spool.read_run(folder).place for folder in nightly} == set(lab.benches)
    assert not any(bench.status().power for bench in lab.benches.values())

    words = ["--lg-env", file, "-k", SELECTION, f"--results={tmp_path / 'single'}"]
    single = programs.pytest(*words, environment=lab.environment, LG_PLACE="evm-1")
    assert single.returncode == 0, single.stdout
    (alone,) = (path.parent for path in (tmp_path / "single").glob("*/run.json"))
    assert figures(alone)
    assert [figures(folder) for folder in nightly] == [figures(alone)] * 2


def test_a_board_of_the_guides_in_a_place_is_booted_and_measured_with_its_own_file(
    lab: VirtualLab, tmp_path: Path
) -> None:
    """From which a virtual EVM differs by its boot medium alone."""
    text = (ENV_DIR / "am64x.yaml").read_text()
    assert text.count("medium: sd") == 1
    file = tmp_path / "am64x.yaml"
    file.write_text(text.replace("medium: sd", "medium: virtio"))
    words = ["--lg-env", file, "--profile", "quick", "-k", "default_rootfs or (emmc_raw_fio and 4k)"]
    words += [f"--results={tmp_path / 'results'}"]
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
