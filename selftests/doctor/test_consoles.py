"""`evmperf doctor` on consoles of real boards, as far as these go; skipped where they are not.

A console of each way to fail: what all of them are called is tested in selftests/replay.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from evmperf.boards import board as boards
from evmperf.lab.doctor.examination import Examination
from evmperf.lab.doctor.finding import CheckOutcome
from selftests.replay.test_collection import CASES, CONSOLES
from selftests.support import seeds
from selftests.support.replayboard import Play, recorded, replay_lab

pytestmark = seeds.needs("real/consoles")

QUICK: dict[str, Any] = {"silence_timeout": 3, "uboot_timeout": 20, "kernel_timeout": 2, "boot_timeout": 5}
BAD_STEP = {
    "am6x-rom-uart-form-1": "U-Boot",
    "am62x-lp-sk-auth-form-1": "U-Boot",
    "am62x-sk-falcon-1": "U-Boot",
    "am62a-sk-nocard-form-1": "Linux",
    "am64x-phyboard-1": "Linux",
    "am64x-phyboard-2": "",
    "am64x-evm-2": "",
}
"""The step at which a console fails, "" for one of a board that is well up to where it ends."""


@pytest.mark.parametrize("name", BAD_STEP)
def test_a_console(name):
    case = next(case for case in CASES if case.name == name)
    text = case.before + recorded(CONSOLES / f"{name}.txt").text
    arguments = {**QUICK, "medium": case.medium}
    with replay_lab(Play(text, case.after), case.board, **arguments) as (_, path):
        found = {f.step: f for f in Examination(boards.load(path)).findings()}
    assert found["power switch"].outcome is CheckOutcome.OK
    step = BAD_STEP[name]
    if not step:
        last = "U-Boot" if case.goal == "uboot" else "Linux"
        assert found[last].outcome is CheckOutcome.OK
        return
    assert (found[step].outcome, found[step].kind) == (CheckOutcome.BAD, case.kind)
    assert re.search(case.sentence, found[step].text)
    assert found["tools"].outcome is CheckOutcome.UNCHECKED
