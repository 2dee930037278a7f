"""A board that starts Linux without U-Boot, as in falcon mode: QEMU loads the kernel itself."""

import shutil
import subprocess

import pytest
import yaml
from evmperf_virtual import envfile, image, recipe

from evmperf.measure.runs import spool
from evmperf.model.records import BootRecord
from evmperf.model.results import Status
from selftests.support import virtualbench
from selftests.support.sessions import whole

pytestmark = pytest.mark.virtual_evm

KERNEL_ARGUMENTS = "console=ttyAMA0,115200n8 root=/dev/vda1 rw rootwait rootfstype=ext4 panic=0 nokaslr"


@pytest.fixture
def without_uboot(tmp_path, monkeypatch):
    """The name of a variant like `virtual`, whose QEMU has its kernel and memory disk as arguments."""
    built = image.build("virtual", progress=print)
    recipes = shutil.copytree(recipe.recipes_dir(), tmp_path / "recipes")
    spec = yaml.safe_load((recipes / "virtual/variant.yaml").read_text())
    at = spec["arguments"].index("-bios")
    loaded = []
    for option, name in (("-kernel", "Image"), ("-initrd", "initrd")):
        file = tmp_path / name
        disk = f"{built.directory}/root.img?offset=1048576"
        subprocess.run(["debugfs", "-R", f"dump /boot/{name} {file}", disk], check=True, capture_output=True)
        assert file.stat().st_size > 1 << 20
        loaded += [option, str(file)]
    spec["arguments"][at : at + 2] = [*loaded, "-append", KERNEL_ARGUMENTS]
    own = {"base": "virtual", "arguments": spec["arguments"]}
    (recipes / "virtual-direct").mkdir()
    (recipes / "virtual-direct/variant.yaml").write_text(yaml.safe_dump(own))
    monkeypatch.setenv("EVMPERF_RECIPES", str(recipes))
    yield "virtual-direct"
    shutil.rmtree(image.build("virtual-direct", progress=print).directory)


def test_its_boots_are_measured_apart_from_those_through_uboot(without_uboot, tmp_path):
    with virtualbench.running(without_uboot) as bench:
        direct, ports = tmp_path / "direct.yaml", bench.record
        text = envfile.source("virtual").read_text()
        original = tmp_path / "virtual.yaml"
        original.write_text(text.replace("      boot:\n", "      boot:\n        flow: sbl\n"))
        envfile.write(original, direct, serial_port=ports.serial_port, power_port=ports.power_port)
        session = whole(direct, tmp_path, "boot_time", "--boots=1")
    (measured,) = session.measured()
    assert (measured.case, measured.status) == ("default_rootfs", Status.MEASURED)
    # Kernel arguments are U-Boot's to give.
    assert "1 skipped" in session.said
    assert str(measured.conditions["counted_from"]).endswith("SBL, no U-Boot")
    cycles = [record for record in spool.read_records(session.folder) if isinstance(record, BootRecord)]
    assert len(cycles) == len(measured.values("boot_time")) == 1
    for cycle, boot_time, loader in zip(
        cycles, measured.values("boot_time"), measured.values("output_to_kernel"), strict=True
    ):
        at = {mark.phase: mark.mono_ns / 1e9 for mark in cycle.marks}
        assert boot_time == pytest.approx(at["prompt"] - at["first_kernel_line"])
        assert loader == pytest.approx(at["first_kernel_line"] - at["first_output"])
