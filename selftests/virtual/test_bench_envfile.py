"""Copies of a virtual EVM's board file for boards side by side."""

import pytest
from evmperf_virtual import envfile

from evmperf.boards import board as boards
from evmperf.model.errors import UsageError
from selftests.virtual.test_recipe import VARIANTS

FILE = envfile.source("virtual")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_copy_differs_in_its_ports_alone(tmp_path, variant):
    original, copy = envfile.source(variant), tmp_path / "other" / "board-b.yaml"
    envfile.write(original, copy, serial_port=1234, power_port=5678)
    assert boards.load(copy).lab_ports() == (1234, 5678)
    head, *lines = copy.read_text().splitlines()
    changed = [
        (old, new) for old, new in zip(original.read_text().splitlines(), lines, strict=True) if old != new
    ]
    assert str(original) in head
    assert all("1234" in new or "5678" in new for _, new in changed)
    assert len(changed) == (3 if "ScpiMeter:" in original.read_text() else 2)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        envfile.write(tmp_path / "no.yaml", tmp_path / "copy.yaml", serial_port=1, power_port=2)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        envfile.write(FILE, tmp_path / "file" / "copy.yaml", serial_port=1, power_port=2)


@pytest.mark.parametrize(
    ("old", "new"), [("port: 7001", "port: console"), ("127.0.0.1:7002/power", "power.lab")]
)
def test_a_file_of_another_kind_of_board_has_no_ports(tmp_path, old, new):
    (tmp_path / "virtual.yaml").write_text(FILE.read_text().replace(old, new))
    with pytest.raises(UsageError, match="does not name the ports"):
        boards.load(tmp_path / "virtual.yaml").lab_ports()
