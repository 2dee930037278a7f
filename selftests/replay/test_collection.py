"""Every recorded console of ../shared/real/consoles, played to the strategy: marks, kind, sentence,
and seconds from the line that shows a failure to the failure. Healthy boards fail never.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

from evmperf.boards.console.watch import Watch
from evmperf.model.errors import Kind
from selftests.replay import texts
from selftests.support import seeds
from selftests.support.replayboard import Outcome, Play, recorded, replay

CONSOLES = seeds.place("real/consoles")
LATEST_S = 5.0
"""How long after its last line a failure must have its name."""
SILENCE_S = 3
"""Stands for the 20 s after which a boot loader that says nothing is given up."""

pytestmark = seeds.needs("real/consoles")

LOADED = "spl_banner tf_a a53_spl uboot_banner autoboot"
KERNEL = "starting_kernel first_kernel_line root_mounted init_started"


@dataclass(frozen=True)
class Case:
    """What becomes of a console. `before` and `after` are what the recording lacks."""

    name: str
    board: str
    goal: str
    marks: str
    sentence: str = ""
    kind: Kind | None = None
    before: bytes = b""
    after: bytes = b""
    medium: str = "sd"
    phase: str = ""

    def play(self) -> Outcome:
        """Play it."""
        text = self.before + recorded(CONSOLES / f"{self.name}.txt").text
        return replay(
            Play(text, self.after),
            self.board,
            goal=self.goal,
            medium=self.medium,
            silence_timeout=SILENCE_S,
            uboot_timeout=20,
        )


def stops(name: str, board: str, marks: str, **more: object) -> Case:
    """A console that ends at or before U-Boot's prompt, which is reached."""
    return Case(name, board, "uboot", marks, **more)  # type: ignore[arg-type]


def boots(name: str, board: str, marks: str, **more: object) -> Case:
    """A console that boots Linux."""
    return Case(name, board, "booted", f"{marks} prompt", **more)  # type: ignore[arg-type]


def fails(name: str, board: str, marks: str, sentence: str, **more: object) -> Case:
    """A console on which the boot fails with that sentence, a regular expression."""
    given = {"kind": Kind.BOARD, **more}
    return Case(name, board, "booted", marks, sentence, **given)  # type: ignore[arg-type]


LINUX = texts.kernel()
"""Before a piece of a kernel's log."""

CASES = [
    fails("am62a-sk-nocard-form-1", "am62a-sk", LOADED, "nothing bootable.*no card present"),
    fails(
        "am62a-sk-panic-form-1",
        "am62a-sk",
        f"{LOADED} starting_kernel first_kernel_line root_mounted",
        "kernel panic.*VFS: Unable to mount root fs",
        before=texts.LOADER + LINUX,
    ),
    stops("am62a-sk-sbl-1", "am62a-sk", "tf_a a53_spl uboot_banner autoboot"),
    fails(
        "am62l-emmcfail-form-1",
        "am62l",
        LOADED,
        "nothing bootable.*fs_devread read error",
        before=texts.LOADER,
        medium="emmc",
    ),
    stops("am62l-evm-1", "am62l", "bl1 tf_a a53_spl uboot_banner autoboot"),
    fails(
        "am62l-oops-form-1",
        "am62l",
        f"{LOADED} starting_kernel first_kernel_line root_mounted",
        "kernel oops.*synchronous external abort",
        before=texts.LOADER + LINUX,
    ),
    boots(
        "am62x-beagleplay-1",
        "am62x-sk",
        "spl_banner tf_a op_tee a53_spl uboot_banner autoboot starting_kernel",
        medium="emmc",
    ),
    stops("am62x-garbage-form-1", "am62x-sk", LOADED),
    fails("am62x-lp-sk-auth-form-1", "am62x-lp-sk", "spl_banner", "image refused.*HS-FS"),
    fails("am62x-sk-falcon-1", "am62x-sk", "spl_banner first_kernel_line", "falcon mode", kind=Kind.LAB),
    fails("am62x-sk-fast-1", "am62x-sk", "tf_a prompt", "no U-Boot in this boot", kind=Kind.LAB),
    fails("am62x-sk-hs-1", "am62x-sk", "spl_banner", "image refused.*HS-FS"),
    fails(
        "am62x-sk-sbl-1", "am62x-sk", "tf_a a53_spl uboot_banner", "autoboot was not stopped", kind=Kind.LAB
    ),
    fails(
        "am62x-uboot-abort-form-1",
        "am62x-sk",
        LOADED,
        "U-Boot crashed.*Synchronous Abort",
        before=texts.LOADER,
    ),
    stops("am64x-evm-1", "am64x", "spl_banner tf_a op_tee a53_spl uboot_banner autoboot"),
    boots("am64x-evm-2", "am64x", f"spl_banner a53_spl uboot_banner autoboot {KERNEL}", after=texts.SD),
    fails("am64x-evm-sdk91-form-1", "am64x", "spl_banner", "the boot hangs.*SPL initial stack"),
    fails("am64x-phyboard-1", "am64x", LOADED, "silent reset.*resetting"),
    stops("am64x-phyboard-2", "am64x", LOADED),
    boots("am64x-sk-arago-form-1", "am64x", f"{LOADED} {KERNEL}"),
    fails("am6x-rom-uart-form-1", "am64x", "", "nothing bootable.*boot-mode switches"),
    boots("j721e-bbai64-1", "j721e", f"{LOADED} starting_kernel", after=texts.LOGIN),
    stops("j721e-evm-sdk80-form-1", "j721e", LOADED),
    boots("j721s2-am68-sk-form-1", "j721s2", f"uboot_banner autoboot {KERNEL}", after=texts.SD),
    stops("j784s4-evm-1", "j784s4", "spl_banner tf_a op_tee a53_spl uboot_banner autoboot"),
    fails("j784s4-evm-2", "j784s4", "spl_banner", "boot loader stopped.*ERROR"),
]
SESSIONS = ["j7200-evm-login-form-1", "am62x-verdin-form-1"]
"""Linux at work, and on its way to a reboot: nothing in them is a failure."""


def test_the_whole_collection_is_played():
    known = {case.name for case in CASES} | set(SESSIONS)
    assert known == {path.stem for path in CONSOLES.glob("*.txt")}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_console(case):
    outcome = case.play()
    marks = ["power_on", "first_output", *case.marks.split()]
    assert [str(phase) for phase in outcome.boot.marks] == marks
    error = outcome.boot.error
    if case.kind is None:
        assert error is None
        return
    assert error is not None
    assert error.kind is case.kind
    assert re.search(case.sentence, str(error))
    limit = SILENCE_S + 2 if "hangs" in case.sentence else LATEST_S
    assert outcome.late_s < limit


@pytest.mark.parametrize("name", SESSIONS)
@pytest.mark.parametrize("size", [1, 64, 4096])
def test_a_session_raises_no_alarm(name, size):
    text = texts.LOADER + texts.SD + recorded(CONSOLES / f"{name}.txt").text
    watch = Watch()
    watch.restart()
    watch.settle()
    text = text[text.index(b"Hit any") :]
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert [alarm for piece in pieces if (alarm := watch.feed(piece))] == []
