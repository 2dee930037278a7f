"""A/B under `git bisect run`, and confirmations, from end to end on a scripted board that boots its card."""

import json
import os
import re
import shutil
import sys
from pathlib import Path

import pytest
import yaml

from evmperf.benchmarks import wording
from evmperf.boards import board as boards
from evmperf.judge.past import FEWEST
from evmperf.lab.provision import identity
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key
from selftests.provision import imagelab
from selftests.support import programs, years
from selftests.support.boardfiles import console_and_power
from selftests.support.fakeboard import FakeBoard, FakeSwitch
from selftests.support.texts import BOOT

METRIC = "boot_time_mmcsd/default_rootfs/boot_time"
ROW = f"| **worse** | {wording.figure(Key(*METRIC.split('/')))} |"
"""How the note's row about it begins."""
NIGHTS = FEWEST + 3  # fewer have no range that one night could be beyond
PACE_S = {b"true": 0.1, b"sleep": 0.5}
"""Between what the board prints while it boots, by a word of its init script: a busy host adds less."""


COMMANDS = {
    "uname": f"""case $1 in -r) echo '{imagelab.RELEASE}' ;; -v) echo '{imagelab.VERSION}' ;;
        *) exec /bin/uname "$@" ;; esac""",
    "cat": '[ ! -e "$CARD$1" ] || set -- "$CARD$1"; exec /bin/cat "$@"',
    "lsblk": "echo 0badcafe-02",
    "dd": "",
}
"""What a shell on a board with a card says otherwise than one on this machine."""


class WithCard(FakeBoard):
    """Boots what is on its card, as slowly as the init script there says, or not at all."""

    def __init__(self, folder):
        super().__init__()
        self.card, self._root, programs = folder / "card", folder / "root", folder / "bin"
        for part in (self._root / "etc", programs):
            part.mkdir(parents=True)
        for name, text in COMMANDS.items():
            (programs / name).write_text(f"#!/bin/sh\n{text}\n")
            (programs / name).chmod(0o755)
        path = f"{programs}:{os.environ['PATH']}"
        self.environment = {**os.environ, "PATH": path, "CARD": str(self._root)}

    def switch(self, on):
        if on:
            _, (start, _, _) = identity._partitions(self.card)
            system = identity._ext(self.card, start)
            for name in ("etc/os-release", "etc/hostname"):
                (self._root / name).write_bytes(system(f"/{name}"))
            word = system("/etc/init.d/rcS").split()[0]
            self.boots = ["well" if word in PACE_S else "panic"]
            self.pace_s = PACE_S.get(word, 0)
        super().switch(on)


def image(file, number, init):
    """A small image with that version and that init script."""
    spec = imagelab.Spec()
    banner = BOOT[BOOT.index(b"U-Boot 20") :].partition(b"\r")[0]
    spec.boot["u-boot.img"] = bytes(500) + banner + bytes(99)
    spec.root["usr/lib/os-release"] = f'PRETTY_NAME="Small"\nVERSION_ID="{number}"\n'.encode()
    spec.root["etc/init.d/rcS"] = f"{init}\n".encode()
    return imagelab.build(file, spec)


@pytest.fixture
def board(tmp_path):
    board = WithCard(tmp_path / "board")
    yield board
    board.close()


@pytest.fixture
def file(board, tmp_path):
    """The file of that board."""
    switch = FakeSwitch(board)
    data = yaml.safe_load((boards.ENV_DIR / "virtual.yaml").read_text())
    main = data["targets"]["main"]
    del main["options"]["board"]["virtual"], main["drivers"]["ScpiMeterDriver"]
    main["options"] = {
        "board": main["options"]["board"],
        "boot": {"medium": "virtio"},
        "image": {"command": f"dd if={{image}} of={board.card}"},
    }
    main["features"] = ["boot"]
    main["resources"] = console_and_power(board.port, switch.port)
    main["drivers"]["K3BootStrategy"] = {"retries": 0, "roots": {}, "media": {"virtio": []}}
    file = tmp_path / "scripted.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    yield file
    switch.close()


@pytest.mark.many_sessions
def test_git_bisect_run_finds_the_image_that_is_slower(file, tmp_path):
    """The recipe of docs/ab.md for a list of images; the third, of which git asks first, does not boot."""
    names = tmp_path / "releases.txt"
    images = [
        image(tmp_path / f"small-{number}.img", number, init)
        for number, init in enumerate(("true", "sleep 1", "exit 1", "sleep 1 # and more"))
    ]
    names.write_text("".join(f"{one}\n" for one in images))
    blocks = re.findall(r"```sh\n(.*?)```", (Path(__file__).parents[2] / "docs/ab.md").read_text(), re.DOTALL)
    (recipe,) = (block for block in blocks if "releases.txt" in block)
    recipe = recipe.replace("am64x.yaml", str(file)).replace("emmc_ext4/4k/write_throughput", METRIC)
    recipe = recipe.replace("--git-bisect", f"--git-bisect --boots=1 --results={tmp_path / 'results'}")
    environment = {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    for who in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{who}_NAME": "Somebody", f"GIT_{who}_EMAIL": "somebody@board.example"}
    done = programs.run("sh", "-ec", recipe, cwd=tmp_path, environment={**os.environ, **environment})
    assert "is the first bad commit" in done.stdout, done.stdout + done.stderr
    assert f"{images[1]}" in done.stdout.split("is the first bad commit")[1], done.stdout + done.stderr
    assert len(list((tmp_path / "results").glob("ab-*"))) == 2  # the second tells, the third does not boot


@pytest.mark.many_sessions
def test_an_alarm_is_confirmed(file, tmp_path):
    """After some nights, of which one was measured and the others are its copies, the image differs."""
    results, note = tmp_path / "results", tmp_path / "note.md"
    first, slow = (
        image(tmp_path / f"small-{number}.img", number, init)
        for number, init in enumerate(("true", "sleep 1"))
    )

    def night(image):
        words = [f"--lg-env={file}", f"--image={image}", "-k=boot_time_mmcsd-default_rootfs", "--boots=1"]
        done = programs.pytest(*words, f"--results={results}", "--run-kind=nightly", "-q")
        assert done.returncode == 0, done.stdout
        return max(results.glob("*/run.json")).parent

    measured = night(first)
    run = json.loads((measured / "run.json").read_text())
    for number in range(1, NIGHTS):
        copy = shutil.copytree(measured, results / f"{measured.name}-{number}")
        later = {"id": copy.name, "started_ns": run["started_ns"] + number * 10**6}
        (copy / "run.json").write_text(json.dumps(run | later))
        years.scale(copy, lambda *_, factor=1 + 0.01 * (-1) ** number: factor)
    night(slow)
    words = ["check", "last", "--against", f"last:{NIGHTS}", "--confirm=30m", f"--results={results}"]
    done = programs.evmperf(*words, f"--board={file}", f"--markdown={note}")
    text = note.read_text()
    assert done.returncode == ExitStatus.FAILED, text
    (row,) = [line for line in text.splitlines() if line.startswith(ROW)]
    assert "| confirmed by an A/B" in row
    assert "next: git bisect run evmperf ab" in text
