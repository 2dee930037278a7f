"""Consoles of every form that boards are known to say, and what evmperf makes of each text: those in
data/consoles, in words of our own, and the collections of real ones that lie beside this checkout with a
person's verdicts. `verdicts.tsv` has what becomes of a real one, who acts, the cause, a part of the sentence,
and of some where the text begins and the marks. A name that is not in the table is a healthy board's.
"""

from __future__ import annotations

import csv
import json
import random
import re
from pathlib import Path

import pytest

from evmperf.boards.console import booted, signs
from evmperf.boards.console.marks import Phase
from evmperf.boards.console.watch import Watch
from evmperf.model.errors import Kind
from selftests.replay import texts
from selftests.support import seeds
from selftests.support.consoles import marks, recorded, verdict
from selftests.support.replayboard import Play, replay

BEFORE = {
    "power": b"",
    "uboot": texts.LOADER,
    "linux": texts.LOADER + texts.kernel(),
    "linux0": texts.LOADER + b"\r\nStarting kernel ...\r\n\r\n",
}
ON_NO_CARD = {
    "am62-nfs-wrongroot-form": "root: nfs on /dev/nfs",
    "am62x-ubifs-sdautomount-form": "root: ubifs on ubi0:rootfs",
}
SESSIONS = ["j7200-evm-login-form-1", "am62x-verdin-form-1"]
"""Linux at work, and on its way to a reboot: nothing in them is a failure."""
SILENCE_S = 3
"""Stands for the 20 s after which a boot loader that says nothing is given up."""
LATEST_S = 5.0
"""How long after its last line a failure must have its name."""


def _table(file):
    """Rows of a table by folder and name; none where it is not."""
    if not file.is_file():
        return {}
    with file.open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        return {(row.get("folder") or file.parent.name, row["name"]): row for row in rows}


TRUTHS = {
    key: row
    for folder, name in (("consoles-3", "truth.tsv"), ("consoles-4", "truth.tsv"), ("small-5", "cases.tsv"))
    for key, row in _table(seeds.place(f"real/{folder}") / name).items()
}
WANTED = _table(Path(__file__).with_name("verdicts.tsv"))
HERE = [key for key in {**WANTED, **TRUTHS} if seeds.place(f"real/{key[0]}").is_dir()]
HEALTHY = [key for key, row in TRUTHS.items() if row.get("healthy") == "yes"]


def _text(folder, name):
    return recorded(seeds.place(f"real/{folder}") / f"{name}.txt")


@seeds.needs("real/consoles-2")
@pytest.mark.parametrize(("folder", "apart"), [("consoles", SESSIONS), ("consoles-2", ON_NO_CARD)])
def test_a_whole_collection_is_judged(folder, apart):
    known = {name for place, name in WANTED if place == folder}
    there = {path.stem for path in seeds.place(f"real/{folder}").glob("*.txt")}
    assert known | {*apart} == there


@seeds.needs("real/consoles-4")
@pytest.mark.parametrize("key", HERE, ids="/".join)
def test_a_console_has_the_verdict_of_a_person(key):
    wanted = WANTED.get(key)
    begin = TRUTHS[key]["begins at"] if key in TRUTHS else wanted["begin"] or "power"
    text = BEFORE[begin] + _text(*key)
    found = verdict(text)
    if not wanted:
        assert key in HEALTHY
        assert found.what == "booted", found
        return
    assert [found.what, found.kind] == [wanted["what"], wanted["kind"]], found
    assert found.cause.startswith(wanted["cause"])
    assert bool(found.cause) == bool(wanted["cause"])
    assert wanted["says"] in found.says
    assert "Err: " not in found.says
    assert found.root in (None, "root: mmcblk1p2 type: SD", "root: mmcblk0p2 type: SD")
    if key[0] == "consoles-2":
        assert len(found.notes) == (key[1] == "am6442-sysctrl-recovers-form")
    if wanted["marks"]:
        assert " ".join(map(str, marks(text))) == f"power_on first_output {wanted['marks']}"


@seeds.needs("real/consoles")
@pytest.mark.parametrize(
    ("name", "board", "goal", "sentence"),
    [
        ("am62l-evm-1", "am62l", "uboot", ""),
        ("am64x-sk-arago-form-1", "am64x", "booted", ""),
        ("am62x-beagleplay-1", "am62x-sk", "booted", ""),
        ("am62a-sk-nocard-form-1", "am62a-sk", "booted", "nothing bootable.*no card present"),
        ("am62a-sk-panic-form-1", "am62a-sk", "booted", "kernel panic.*VFS: Unable to mount root fs"),
        ("am64x-evm-sdk91-form-1", "am64x", "booted", "the boot hangs.*SPL initial stack"),
        ("am62x-sk-falcon-1", "am62x-sk", "booted", "falcon mode"),
    ],
)
def test_the_strategy_comes_to_the_same(name, board, goal, sentence):
    """A console of each end, played: also how long after its last line a failure has its name."""
    wanted = WANTED["consoles", name]
    play = Play(BEFORE[wanted["begin"]] + _text("consoles", name))
    medium = "emmc" if "beagleplay" in name else "sd"
    given = {"silence_timeout": SILENCE_S, "uboot_timeout": 20, "medium": medium}
    outcome = replay(play, board, goal=goal, **given)
    assert " ".join(map(str, outcome.boot.marks)) == f"power_on first_output {wanted['marks']}"
    error = outcome.boot.error
    assert bool(error) == bool(sentence)
    if error:
        assert str(error.kind) == wanted["kind"]
        assert re.search(sentence, str(error))
        assert outcome.late_s < (SILENCE_S + 2 if "hangs" in sentence else LATEST_S)


@seeds.needs("real/consoles")
@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_raises_no_alarm(name):
    text = texts.LOADER + texts.SD + _text("consoles", name)
    text = text[text.index(b"Hit any") :]
    for size in (1, 64, 4096):
        watch = Watch()
        watch.restart()
        watch.settle()
        assert not any(watch.feed(text[at : at + size]) for at in range(0, len(text), size))


@seeds.needs("real/consoles-2")
@pytest.mark.parametrize("name", ON_NO_CARD)
def test_a_root_that_is_on_no_card_is_refused(name):
    system = booted.shown(_text("consoles-2", name).decode("utf-8", "replace"))
    assert system.root == ON_NO_CARD[name]
    refused = booted.complaint("sd", booted.ROOTS["sd"], "", system, ())
    assert refused.kind is Kind.LAB


@seeds.needs("real/consoles-2")
def test_the_prompt_is_marked_and_not_a_sentence_that_names_it():
    found = marks(_text("consoles-2", "am62x-ok-issue-login-form"))
    assert found[Phase.PROMPT].text.strip() == "am62xx-evm login:"


@seeds.needs("real/consoles-2")
def test_what_android_does_not_say_is_recorded_with_the_boot():
    boot = replay(Play(_text("consoles-2", "am62-android-form")), "am62x-sk", medium="sd").boot
    assert boot.error is None
    assert any("Android does not report its medium" in note for note in boot.notes)


@seeds.needs("real/consoles-4")
@pytest.mark.parametrize("key", HEALTHY, ids="/".join)
def test_no_line_of_a_healthy_boot_loader_is_trouble(key):
    trouble, benign = signs.telling("trouble"), signs.telling("benign")
    text = signs.plain(_text(*key).decode("utf-8", "replace"))
    kernel = signs.telling("start").search(text)
    end = kernel.start() if kernel else len(text) * (TRUTHS[key]["begins at"] in ("power", "uboot"))
    quoted = [line for line in text[:end].split("\n") if trouble.search(line) and not benign.search(line)]
    assert not quoted


FOLDER = Path(__file__).resolve().parents[1] / "data/consoles"
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
SOUND = [name for name in NAMES if name.startswith("ok-")]


def recording(name):
    """Its text from power-on, and what is to become of it."""
    wanted = json.loads((FOLDER / f"{name}.json").read_text())
    text = (FOLDER / f"{name}.txt").read_bytes().replace(b"\n", b"\r\n")
    return BEFORE[wanted["begin"]] + text, wanted


@pytest.mark.parametrize("size", [1, 1 << 20])
@pytest.mark.parametrize("name", NAMES)
def test_a_form_has_its_verdict(name, size):
    text, wanted = recording(name)
    found = verdict(text, size)
    assert found.what == wanted["verdict"], found
    assert found.cause.startswith(wanted.get("cause", ""))
    assert found.kind == wanted.get("kind", found.kind)
    assert len(found.notes) == wanted.get("notes", 0)
    assert wanted.get("says", "") in found.says + "".join(found.notes)


@pytest.mark.parametrize("name", [name for name in SOUND if "old-panic" not in name])
def test_a_healthy_console_that_is_damaged_behind_the_countdown_is_no_alarm(name):
    """Bytes are lost or turned: what fails then was not said by the board."""
    text, _ = recording(name)
    dice = random.Random(name)
    begin = text.index(b"autoboot") + 20
    for _ in range(8):
        damaged = bytearray(text)
        for _ in range(dice.randrange(1, 6)):
            at = dice.randrange(begin, len(damaged))
            if dice.random() < 0.5:
                del damaged[at : at + dice.randrange(1, 30)]
            else:
                damaged[at] ^= 1 << dice.randrange(8)
        assert verdict(bytes(damaged)).what != "alarm"


@pytest.mark.parametrize("name", [name for name in NAMES if name not in SOUND])
def test_a_boot_that_failed_is_never_booted_however_it_is_cut(name):
    text, _ = recording(name)
    login = text.find(b"login: ")
    for at in range(0, len(text) if login < 0 else login, 29):
        assert verdict(text[:at]).what != "booted"
