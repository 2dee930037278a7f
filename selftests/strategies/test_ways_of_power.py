"""Power without a switch: by hand, by a software reset, and none at all."""

import contextlib
import threading

import pytest

from evmperf.benchmarks.families import boot as boot_readings
from evmperf.boards.console import powering
from evmperf.boards.console.attempt import CameBack
from evmperf.boards.console.powering import Person
from evmperf.lab.shell import UbootShell
from evmperf.model.errors import BoardError, LabError, Stopped, UsageError

HAND = {"NetworkPowerDriver": None, "ManualPowerDriver": {}}
NO_POWER = {"NetworkPowerDriver": None}


class Scripted(Person):
    """A person who does at each question what the next of `acts` says."""

    def __init__(self, board, *acts):
        super().__init__()
        self.board, self.acts, self.questions, self.enough = board, list(acts), [], False

    @contextlib.contextmanager
    def asked(self, question):
        self.questions.append(question)
        act = self.acts.pop(0) if self.acts else "stop"
        self.enough = act == "stop"
        do = {"off": lambda: self.board.switch(False), "on": lambda: self.board.switch(True)}
        self.timer = threading.Timer(0.3, do.get(act.split()[0], lambda: None))
        self.timer.start()
        self.entered = act.endswith("enter")
        yield
        self.timer.join()

    def answered(self, within_s):
        threading.Event().wait(within_s)
        if self.enough:
            raise Stopped("enough")
        return self.entered


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setattr(powering, "_SILENT_S", 1.0)


@pytest.mark.parametrize(
    ("acts", "switched"),
    [
        (["nothing enter", "on", "off", "on"], [True, False, True]),  # it is off: nobody sees it go off
        (["on", "off", "on"], [True, True, False, True]),  # a replug that is too fast to be seen
    ],
)
def test_a_boot_that_nobody_saw_begin_is_done_again(open_bench, fake, acts, switched):
    if len(switched) > len(acts) - 1:
        fake.switch(True)
    person = Scripted(fake, *acts)
    assert open_bench(person=person, **HAND).cold_boot("").error is None
    assert len(person.questions) == len(acts)
    assert fake.switched == switched


def test_a_person_who_does_nothing_is_a_lab_failure_that_says_how_long(open_bench, fake):
    fake.switch(True)
    bench = open_bench(person=Scripted(fake, "nothing"), K3BootStrategy={"hand_timeout": 1}, **HAND)
    with pytest.raises(LabError, match="within 1 s"):
        bench.uboot()


def test_a_reset_by_software_is_warm_and_never_compared_with_cold(open_bench, fake):
    fake.pace_s = 0.1
    fake.switch(True)
    bench = open_bench({"power": "reset"}, **NO_POWER)
    assert isinstance(bench.uboot(), UbootShell)
    boot = bench.cold_boot("")
    assert boot.error is None
    assert boot.warm
    assert boot_readings.condition(boot) == "Starting kernel of a warm boot"
    metrics = {reading.metric for reading in boot_readings.readings(boot)}
    assert "boot_time" in metrics
    assert not {"power_to_output", "output_to_uboot"} & metrics
    again = bench.cold_boot("")  # out of Linux: `reboot`
    assert again.error is None
    assert "reboot" in fake.typed


@pytest.fixture
def line(switch):
    """Resources of a reset line at the power switch."""
    words = {"url": f"http://127.0.0.1:{switch.port}", "body_asserted": "0", "body_deasserted": "1"}
    return {"HttpDigitalOutput": words}


RESET_LINE = {"DigitalOutputResetDriver": {"delay": 0.1}, "HttpDigitalOutputDriver": {}, **NO_POWER}


def test_a_reset_line_resets_a_board_that_hangs(open_bench, fake, switch, line):
    fake.pace_s = 0.1
    fake.switch(True)
    fake._state = "dead"
    bench = open_bench(resources=line, **RESET_LINE)
    assert bench.board.power == "reset"
    fake.switched.clear()
    boot = bench.cold_boot("")
    assert boot.error is None
    assert fake.switched == [False, True]
    assert boot_readings.condition(boot).endswith(" warm boot by reset line")
    metrics = {reading.metric for reading in boot_readings.readings(boot)}
    assert "boot_time" in metrics
    assert "power_to_output" not in metrics
    assert bench.cold_boot("").error is None  # out of Linux: nothing is typed
    assert "reboot" not in fake.typed
    switch.broken = "no such line"
    with pytest.raises(LabError, match="the reset line refused with 500: no such line"):
        bench.cold_boot("")


def test_a_board_with_a_switch_and_a_reset_line_boots_cold_unless_told(open_bench, line):
    drivers = {name: said for name, said in RESET_LINE.items() if said is not None}
    bench = open_bench(resources=line, **drivers)
    assert (bench.board.power, bench.cold_boot("").warm) == ("switch", "")
    bench._target.cleanup()  # a console server serves one
    bench = open_bench({"power": "reset"}, resources=line, **drivers)
    assert bench.cold_boot("").warm


def test_a_board_that_hangs_cannot_be_reset_by_software(open_bench, fake):
    fake.switch(True)
    fake._state = "dead"
    bench = open_bench({"power": "reset"}, EvmShellDriver={"login_timeout": 1}, **NO_POWER)
    with pytest.raises(BoardError, match="by hand"):
        bench.uboot()


def test_a_board_without_power_that_is_silent_is_the_boards_failure(open_bench):
    bench = open_bench(**NO_POWER, EvmShellDriver={"login_timeout": 1})
    with pytest.raises(BoardError, match="does not answer: no output in 1 s"):
        bench.shell()
    with pytest.raises(UsageError, match="ManualPowerDriver"):
        bench.off()


def test_a_switch_that_cannot_tell_its_state_says_so():
    assert powering.Switch(object(), None, 1).state() == "unknown (its driver cannot tell)"


def test_a_foreign_uboot_is_told_nothing_of_tis(open_bench, fake):
    bench = open_bench(strategy="BootStrategy")
    assert bench.cold_boot("").error is None
    assert "optargs" in " ".join(fake.typed)
    assert not {"mmcdev", "bootpart"} & set(" ".join(fake.typed).replace(";", " ").split())


# What is done before each power-on


def test_before_each_power_on_with_the_power_off(open_bench, fake):
    bench = open_bench()
    seen = []
    bench.before_power_on(lambda: seen.append(fake.is_on))
    bench.shell()
    assert seen == [False]
    bench.abandon()
    bench.shell()
    assert seen == [False, False]


def test_what_cannot_be_done_is_not_tried_again_and_leaves_the_board_off(open_bench, fake):
    bench = open_bench(K3BootStrategy={"retries": 2})
    tries = []

    def refuse():
        tries.append(1)
        error = LabError("the card is gone")
        error.permanent = True
        raise error

    bench.before_power_on(refuse)
    with pytest.raises(LabError, match="the card is gone"):
        bench.shell()
    assert tries == [1]
    assert not fake.is_on


@pytest.mark.parametrize(
    ("said", "permanent"),
    [
        (" ** fs_devread read error - block", False),
        ("Timeout for status update: 00000001 00000001", False),
        ("Failed to load '/boot/Image'", True),
        ("Bad Linux ARM64 Image magic!", True),
    ],
)
def test_a_medium_that_did_not_answer_u_boot_is_worth_another_power_cycle(said, permanent):
    assert CameBack("boot", f"boot\r\n{said}\r\n=> ").permanent == permanent
