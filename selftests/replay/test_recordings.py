"""Consoles of every form that boards are known to say, in words of our own: data/consoles."""

import json
import random
from pathlib import Path

import pytest

from selftests.replay import texts
from selftests.support.consoles import verdict

FOLDER = Path(__file__).resolve().parents[1] / "data/consoles"
NAMES = sorted(path.stem for path in FOLDER.glob("*.txt"))
HEALTHY = [name for name in NAMES if name.startswith("ok-")]
BEFORE = {"power": b"", "uboot": texts.LOADER, "linux": texts.LOADER + texts.kernel()}


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


@pytest.mark.parametrize("name", [name for name in HEALTHY if "old-panic" not in name])
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


@pytest.mark.parametrize("name", [name for name in NAMES if name not in HEALTHY])
def test_a_boot_that_failed_is_never_booted_however_it_is_cut(name):
    text, _ = recording(name)
    login = text.find(b"login: ")
    for at in range(0, len(text) if login < 0 else login, 29):
        assert verdict(text[:at]).what != "booted"
