"""Which way a board has for its images, and the lab's own command."""

import json
import os
import re
import signal
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import envfile
from labgrid.target import Target

from evmperf.commands.cli import main as cli
from evmperf.lab.provision import installation
from evmperf.model.errors import LabError, UsageError
from evmperf.model.exits import ExitStatus
from selftests.provision import imagelab
from selftests.provision.imagelab import MIB, used_card
from selftests.support import programs
from selftests.support.boardfiles import fake_board
from selftests.support.placelab import QUICK
from selftests.support.texts import BOOT


def board(tmp_path, medium="sd", **image):
    return fake_board(tmp_path / "b.yaml", boot={"medium": medium}, image=image)


def test_a_board_without_a_way_is_told_what_to_add(tmp_path):
    with pytest.raises(UsageError, match=r"b\.yaml gives no way .*USBSDMuxDriver"):
        installation.choose(Target("main"), board(tmp_path), None)


def test_the_lab_s_own_command_gets_the_image_whatever_its_name_is(tmp_path, image):
    way = installation.choose(Target("main"), board(tmp_path, command="cp {image} flashed"), None)
    way.put(image, lambda: None)
    assert (tmp_path / "flashed").read_bytes() == image.data


def test_a_command_that_fails_is_a_lab_failure_with_its_last_words(tmp_path, image):
    command = "echo no board on USB {image} >&2; exit 4"
    way = installation.choose(Target("main"), board(tmp_path, command=command), None)
    with pytest.raises(LabError, match=r" 4: no board on USB .*image\.wic"):
        way.put(image, lambda: None)


def test_the_command_writes_a_card_in_a_reader(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    raw = imagelab.build(tmp_path / "a.wic")
    card = used_card(tmp_path / "card", 10 * MIB)
    packed = imagelab.pack(raw, "zst")
    assert cli.main(["image", "show", str(packed), "--write", str(card)]) == 0
    assert f"{card}: {raw.stat().st_size >> 10} KiB written, " in capsys.readouterr().out
    assert card.read_bytes().startswith(raw.read_bytes())
    assert (
        cli.main(["image", "show", str(packed), "--write", str(tmp_path / "none")]) == ExitStatus.LAB_BROKEN
    )
    assert "cannot be looked at" in capsys.readouterr().err


@pytest.fixture
def scripted(tmp_path, fake, switch, monkeypatch):
    """The file of a scripted board whose lab flashes by a command of its own, on a host with own locks."""
    for name in ("LG_PLACE", "LG_COORDINATOR"):
        monkeypatch.delenv(name, raising=False)
    for name in ("CACHE", "LOCKS", "STATE"):
        monkeypatch.setenv(f"EVMPERF_{name}", str(tmp_path / "host"))
    file = tmp_path / "scripted.yaml"
    envfile.write(envfile.source("virtual"), file, serial_port=fake.port, power_port=switch.port)
    data = yaml.safe_load(file.read_text())
    main = data["targets"]["main"]
    del main["options"]["board"]["virtual"], main["drivers"]["ScpiMeterDriver"]
    main["options"]["image"] = {"command": "cp {image} flashed"}
    for name, arguments in QUICK.items():
        main["drivers"][name].update(arguments)
    main["drivers"]["K3BootStrategy"]["roots"] = {}
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    (tmp_path / "host").mkdir()
    return file


def its_image(file, kernel):
    """The image of a scripted board: its U-Boot, and such a kernel."""
    loader = BOOT[BOOT.index(b"U-Boot 20") :].partition(b"\r")[0]
    linux = f"Linux version {kernel.release} (builder@host) (gcc 13.4.0) {kernel.version}\n"
    boot = {"u-boot.img": loader, "Image": b"MZ\0\0" + bytes(3000) + linux.encode()}
    root = {name: Path("/", name).read_bytes() for name in ("etc/hostname", "etc/os-release")}
    return imagelab.build(file, imagelab.Spec(boot=boot, root=root, links={}))


def test_an_image_is_installed_and_one_that_runs_is_left_alone(scripted, fake, tmp_path, capsys):
    # A scripted board is this machine, but for its disk.
    here, tools = os.uname(), tmp_path / "bin"
    tools.mkdir()
    (tools / "lsblk").write_text("#!/bin/sh\necho 0badcafe-02\n")
    (tools / "lsblk").chmod(0o755)
    fake.environment = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    image = its_image(tmp_path / "a.wic", here)

    def install(*words):
        status = cli.main(["image", "install", str(scripted), *map(str, words)])
        said = capsys.readouterr()
        return status, said.out + said.err

    status, said = install(image)
    assert (status, fake.is_on) == (0, False), said
    assert "overwrites the medium that `cp {image} flashed` writes" in said
    assert f"a.wic is installed and runs: {here.release} {here.version}, U-Boot 2025.01" in said
    assert (tmp_path / "flashed").read_bytes() == image.read_bytes()
    status, said = install("--keep-on", image)
    assert (status, fake.is_on) == (0, True), said
    assert f"running and is unchanged: {here.release}" in said
    (tmp_path / "flashed").unlink()
    assert install("--force", image)[0] == 0
    assert (tmp_path / "flashed").exists()
    other = its_image(tmp_path / "b.wic", os.uname_result(["", "", "6.1.0-other", here.version, ""]))
    status, said = install(other)
    assert (status, fake.is_on) == (ExitStatus.LAB_BROKEN, False)
    assert f"its kernel is '{here.release}', the image's is '6.1.0-other'" in said
    fake.boots = ["panic"]
    status, said = install(image)
    assert (status, fake.is_on) == (ExitStatus.FAILED, False), said
    assert "a.wic does not boot: " in said
    switched = list(fake.switched)
    scripted.write_text(
        scripted.read_text().replace("      image:\n", "      image:\n        machine: other-evm\n")
    )
    status, said = install("--keep-on", image)
    assert (status, fake.switched) == (ExitStatus.USAGE, switched), said
    assert "is for the machine " in said


def test_a_write_that_is_killed_is_never_booted(scripted, fake, tmp_path):
    scripted.write_text(scripted.read_text().replace("cp {image} flashed", "kill -9 $PPID {image}"))
    image = its_image(tmp_path / "a.wic", os.uname())
    assert programs.evmperf("image", "install", scripted, image).returncode == -signal.SIGKILL
    words = ("--lg-env", scripted, "-k", "default_rootfs", f"--results={tmp_path / 'results'}")
    done = programs.pytest(*words)
    assert done.returncode == ExitStatus.LAB_BROKEN, done.stdout + done.stderr
    assert re.search(r"write of a\.wic .* was interrupted", done.stdout)
    assert True not in fake.switched


def test_an_image_is_shown_as_lines_and_as_json(plain, packed, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("EVMPERF_CACHE", str(tmp_path / "cache"))
    assert cli.main(["image", "show", str(packed)]) == 0
    assert capsys.readouterr().out.startswith(f"{packed.name}: {plain.stat().st_size >> 20} MiB, SHA-256 ")
    assert cli.main(["image", "show", "--json", "--board", "am64x", str(packed)]) == 0
    said = capsys.readouterr()
    assert json.loads(said.out)["kernel"] == imagelab.RELEASE
    assert said.err == "fit for am64xx-hsevm (am64x.yaml)\n"
