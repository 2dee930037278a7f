"""Copies of a Labgrid environment for boards side by side."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from evmperf.model.errors import UsageError
from evmperf.virtual import envfile

MAPPING = """\
targets:
  main:
    features: [emmc]
    resources:
      NetworkSerialPort: {host: 127.0.0.1, port: 7001, protocol: raw}
      NetworkPowerPort:
        model: rest
        host: 'http://127.0.0.1:7002/power/{index}'
        index: 0
    drivers:
      ShellDriver: {prompt: 'root@\\w+:[^ ]+ ', password: !template "$LG_PASSWORD"}
imports: [evmperf.lab.console, ../strategies/k3boot.py]
images:
  kernel: !template "$BASE/Image"
"""

LIST = """\
targets:
  main:
    resources:
      - NetworkSerialPort: {name: console, host: 127.0.0.1, port: 7001, protocol: raw}
      - cls: NetworkPowerPort
        model: rest
        host: 'http://127.0.0.1:7002/power/{index}'
        index: 0
"""


def test_labgrid_reads_the_copy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from labgrid.config import Config

    monkeypatch.setenv("LG_PASSWORD", "secret")
    original, copy = tmp_path / "env" / "virtual.yaml", tmp_path / "other" / "board-b.yaml"
    original.parent.mkdir()
    original.write_text(MAPPING)
    envfile.write(original, copy, serial_port=1234, power_port=5678)
    config = Config(str(copy))
    main = config.get_targets()["main"]
    assert main["resources"]["NetworkSerialPort"]["port"] == 1234
    power = main["resources"]["NetworkPowerPort"]
    assert power["host"] == "http://127.0.0.1:5678/power/{index}"
    assert power["index"] == "0"
    assert main["features"] == ["emmc"]
    assert main["drivers"]["ShellDriver"]["password"] == "secret"
    assert main["drivers"]["ShellDriver"]["prompt"] == r"root@\w+:[^ ]+ "
    module, imported = yaml.safe_load(copy.read_text().replace("!template", ""))["imports"]
    assert module == "evmperf.lab.console"
    assert Path(imported).resolve() == (tmp_path / "strategies" / "k3boot.py").resolve()
    assert config.get_image_path("kernel") == str(original.parent / "Image")


def test_resources_as_a_list(tmp_path: Path) -> None:
    original, copy = tmp_path / "virtual.yaml", tmp_path / "copy.yaml"
    original.write_text(LIST)
    envfile.write(original, copy, serial_port=1234, power_port=5678)
    serial, power = yaml.safe_load(copy.read_text())["targets"]["main"]["resources"]
    assert serial["NetworkSerialPort"]["port"] == 1234
    assert serial["NetworkSerialPort"]["name"] == "console"
    assert power["host"] == "http://127.0.0.1:5678/power/{index}"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("targets: {main: {resources: {}}}", "has no NetworkSerialPort"),
        ("targets: {}", "has no targets.main.resources"),
        ("just text", "has no targets.main.resources"),
        ("a: [", "is not YAML"),
    ],
)
def test_not_an_environment(tmp_path: Path, text: str, complaint: str) -> None:
    original = tmp_path / "virtual.yaml"
    original.write_text(text)
    with pytest.raises(UsageError, match=complaint):
        envfile.write(original, tmp_path / "copy.yaml", serial_port=1, power_port=2)


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        envfile.write(tmp_path / "no.yaml", tmp_path / "copy.yaml", serial_port=1, power_port=2)


@pytest.mark.parametrize("text", [MAPPING, LIST])
def test_the_ports_of_an_environment_are_known(tmp_path: Path, text: str) -> None:
    (tmp_path / "virtual.yaml").write_text(text)
    assert envfile.ports(tmp_path / "virtual.yaml") == (7001, 7002)


@pytest.mark.parametrize(
    ("old", "new"), [("port: 7001", "port: console"), ("127.0.0.1:7002/power", "power.lab")]
)
def test_an_environment_of_another_kind_of_board_has_no_ports(tmp_path: Path, old: str, new: str) -> None:
    (tmp_path / "virtual.yaml").write_text(MAPPING.replace(old, new))
    with pytest.raises(UsageError, match="does not name the ports"):
        envfile.ports(tmp_path / "virtual.yaml")
