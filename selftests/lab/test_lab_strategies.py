"""Strategies of a lab's own, driven by Labgrid's own target: what they do wrong is one sentence."""

import re
import signal
import time
from pathlib import Path

import pytest
from labgrid import Environment, target_factory

from evmperf.boards import board as boards
from evmperf.boards.console.powering import deadline
from evmperf.commands.cli.main import main
from evmperf.lab import guest
from evmperf.lab.strategy import BootError
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus

ENV = Path(__file__).with_name("labs_strategy.yaml").read_text()
STRATEGY = """
import enum, time
import attr
from labgrid import target_factory
from labgrid.strategy import Strategy, StrategyError

class Status(enum.Enum):
    unknown = 0
    off = 1
    linux = 2

@target_factory.reg_driver
@attr.s(eq=False)
class LabsStrategy(Strategy):
    bindings = {"power": "PowerProtocol", "shell": "ShellDriver"}
    status = attr.ib(default=Status.unknown)

    def transition(ARGUMENTS):
        BODY
"""

WHOLE = STRATEGY.replace("ARGUMENTS", "self, status").replace("BODY", "pass")


@pytest.fixture(autouse=True)
def registered():
    """Labgrid takes a class's name once."""
    yield
    for names in (target_factory.drivers, target_factory.all_classes):
        names.pop("LabsStrategy", None)


@pytest.fixture
def driven(tmp_path, request):
    """evmperf's hold on a strategy with such a `transition`."""
    arguments, body = request.param
    (tmp_path / "strategy.py").write_text(STRATEGY.replace("ARGUMENTS", arguments).replace("BODY", body))
    file = tmp_path / "lab.yaml"
    file.write_text(ENV)
    environment = Environment(str(file))
    board = boards.load(file)
    guest.adapt(environment.config, board)
    strategy = guest.strategy_of(environment.get_target(), board)
    strategy.retries = 0
    yield strategy
    environment.cleanup()


@pytest.mark.parametrize(
    ("driven", "said"),
    [
        (("self, status", "raise RuntimeError('relay 4 is stuck')"), "relay 4 is stuck"),
        (("self, status", "raise StrategyError('no such state')"), "no such state"),
        (("self, status", "time.sleep(30)"), "has not come to off for 0.2 s"),
        (("self, status, slot", "pass"), "cannot be called with a state: .*slot"),
        (("self, status", "print('hello'); return undefined"), "undefined"),
    ],
    indirect=["driven"],
)
def test_a_transition_that_goes_wrong_is_one_sentence(driven, monkeypatch, said):
    monkeypatch.setattr(guest, "_TRANSITION_S", 0.2)
    with pytest.raises(BootError, match=said) as caught:
        driven.transition("off")
    assert "\n" not in str(caught.value)
    assert driven.status is guest.BoardState.unknown


FORCE = """pass

    def force(self, status):
        self.status = Status[status]"""


@pytest.mark.parametrize("driven", [("self, status", FORCE)], indirect=True)
def test_an_initial_state_may_have_the_labs_name_or_evmperfs(driven):
    for name in ("linux", "shell"):
        driven.force(name)
        assert (driven.status.name, driven._strategy.status.name) == ("shell", "linux")
    with pytest.raises(KeyError):
        driven.force("fastboot")


@pytest.mark.parametrize("driven", [("self, status", "pass")], indirect=True)
def test_a_strategy_that_cannot_be_forced_is_named(driven):
    with pytest.raises(UsageError, match=r"LabsStrategy has no `force`.*--lg-initial-state"):
        driven.force("linux")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"import a_package_of_the_lab\n{WHOLE}", r"strategy\.py.*a_package_of_the_lab"),
        (f"def\n{WHOLE}", "strategy.py"),
        (WHOLE.replace("linux", "rescue"), "has no state called shell"),
        (WHOLE.replace("self, status", "self, status, slot"), "transition wants slot"),
    ],
    ids=["import", "syntax", "states", "arguments"],
)
def test_a_strategy_that_cannot_work_is_one_sentence_with_its_name(tmp_path, capsys, text, said):
    (tmp_path / "strategy.py").write_text(text)
    file = tmp_path / "lab.yaml"
    file.write_text(ENV)
    assert main(["board", "check", str(file)]) == ExitStatus.USAGE
    err = capsys.readouterr().err
    assert "Traceback" not in err
    assert re.search(said, err), err


def test_a_deadline_leaves_the_alarm_of_others():
    """pytest-timeout's limit of a test is the same timer."""
    heard = []
    before = signal.signal(signal.SIGALRM, lambda *_: heard.append(time.monotonic()))
    began = time.monotonic()
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with deadline(5, "never"):
            time.sleep(0.05)
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3
        signal.pause()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert len(heard) == 1
    assert heard[0] - began >= 0.29
