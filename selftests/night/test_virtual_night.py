"""A night on two virtual EVMs in places, and the same measured by single sessions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import client, image

from evmperf.benchmarks import catalogue
from evmperf.boards import yamlfile
from evmperf.boards.board import ENV_DIR
from evmperf.measure.hostload import slowness
from evmperf.measure.runs import spool
from selftests.support import spools
from selftests.support.placelab import REPOSITORY, PlaceLab

pytestmark = pytest.mark.virtual_evm

SELECTION = "default_rootfs"


class VirtualLab(PlaceLab):
    """A lab whose places are virtual EVMs."""

    def __init__(self, folder: Path, benches: dict[str, client.LabClient]) -> None:
        self.benches = benches
        super().__init__(folder, {name: {} for name in benches})

    def _resources(self, name: str) -> dict[str, dict[str, object]]:
        ports = self.benches[name].record
        return {
            "NetworkSerialPort": {
                "host": "127.0.0.1",
                "port": ports.serial_port,
                "protocol": "raw",
                "speed": 10000000,
            },
            "NetworkPowerPort": {
                "model": "rest",
                "host": f"http://127.0.0.1:{ports.power_port}/power/{{index}}",
                "index": "0",
            },
        }


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualLab]:
    monkeypatch.setenv("EVMPERF_STATE", str(tmp_path / "state"))
    image.build("virtual", progress=print)
    benches = {f"evm-{n}": client.LabClient(f"night{n}-{os.getpid()}") for n in (1, 2)}
    try:
        for bench in benches.values():
            bench.start("virtual", serial_port=0, power_port=0)
        lab = VirtualLab(tmp_path, benches)
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
    data["imports"] = [
        str((ENV_DIR / name).resolve()) if name.endswith(".py") else name for name in data["imports"]
    ]
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
    words = [sys.executable, "-m", "evmperf.commands.cli.main", "night", str(plan)]
    done = subprocess.run(
        [*words, "--results", str(results)],
        cwd=REPOSITORY,
        env=lab.environment,
        capture_output=True,
        text=True,
        timeout=500 * slowness(),
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    nightly = sorted(path.parent for path in results.glob("*/run.json"))
    assert {spool.read_run(folder).place for folder in nightly} == set(lab.benches)
    assert not any(bench.status().power for bench in lab.benches.values())

    words = [sys.executable, "-m", "pytest", "--lg-env", str(file), "-k", SELECTION]
    single = subprocess.run(
        [*words, f"--results={tmp_path / 'single'}", "-p", "no:cacheprovider"],
        cwd=REPOSITORY,
        env={**lab.environment, "LG_PLACE": "evm-1"},
        capture_output=True,
        text=True,
        timeout=300 * slowness(),
        check=False,
    )
    assert single.returncode == 0, single.stdout
    (alone,) = (path.parent for path in (tmp_path / "single").glob("*/run.json"))
    assert figures(alone)
    assert [figures(folder) for folder in nightly] == [figures(alone)] * 2
