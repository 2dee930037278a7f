"""Collections of real consoles that lie beside this checkout with a person's verdicts, and what evmperf makes
of each text: `verdicts.tsv` has what becomes of it, who acts, the cause and a part of the sentence. A name
that is not in the table is a healthy board's.
"""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from evmperf.boards.console import signs
from evmperf.boards.console.marks import Phase
from evmperf.model.errors import Kind
from selftests.replay import texts
from selftests.support import seeds
from selftests.support.consoles import verdict
from selftests.support.replayboard import Play, recorded, replay

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
    return recorded(seeds.place(f"real/{folder}") / f"{name}.txt").text


@seeds.needs("real/consoles-2")
def test_the_whole_second_collection_is_judged():
    known = {name for folder, name in WANTED if folder == "consoles-2"}
    assert known | {*ON_NO_CARD} == {path.stem for path in seeds.place("real/consoles-2").glob("*.txt")}


@seeds.needs("real/consoles-4")
@pytest.mark.parametrize("key", HERE, ids="/".join)
def test_a_console_has_the_verdict_of_a_person(key):
    begin = TRUTHS[key]["begins at"] if key in TRUTHS else "power"
    found = verdict(BEFORE[begin] + _text(*key))
    if key not in WANTED:
        assert key in HEALTHY
        assert found.what == "booted", found
        return
    wanted = WANTED[key]
    assert [found.what, found.kind] == [wanted["what"], wanted["kind"]], found
    assert found.cause.startswith(wanted["cause"])
    assert bool(found.cause) == bool(wanted["cause"])
    assert wanted["says"] in found.says
    assert "Err: " not in found.says
    assert found.root in (None, "root: mmcblk1p2 type: SD", "root: mmcblk0p2 type: SD")
    if key[0] == "consoles-2":
        assert len(found.notes) == (key[1] == "am6442-sysctrl-recovers-form")


@seeds.needs("real/consoles-2")
@pytest.mark.parametrize("name", ON_NO_CARD)
def test_a_root_that_is_on_no_card_is_refused(name):
    text = _text("consoles-2", name)
    assert verdict(text).root == ON_NO_CARD[name]
    boot = replay(Play(text), "am62x-sk", medium="sd").boot
    assert boot.error is not None
    assert boot.error.kind is Kind.LAB


@seeds.needs("real/consoles-2")
def test_the_prompt_is_marked_and_not_a_sentence_that_names_it():
    boot = replay(Play(_text("consoles-2", "am62x-ok-issue-login-form")), "am62x-sk", medium="sd").boot
    assert boot.error is None
    assert boot.marks[Phase.PROMPT].text.strip() == "am62xx-evm login:"


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
