"""A bench on a scripted board behind a real console and power switch."""

import contextlib

import pytest
import yaml
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.boards.console import powering
from evmperf.lab import shell as shell_module
from evmperf.lab import strategy as strategy_module
from evmperf.lab.bench import LabgridBench
from selftests.support.boardfiles import console_and_power
from selftests.support.placelab import QUICK

QUICKER = {
    "K3BootStrategy": {"uboot_timeout": 10, "kernel_timeout": 10, "boot_timeout": 10, "roots": {}},
    "EvmShellDriver": {"await_login_timeout": 1},
    "StampedSerialDriver": {"timeout": 2.0},
}


@pytest.fixture
def open_bench(tmp_path, fake, switch, monkeypatch):
    """A function that gives a bench on the fake board; keywords are a driver's arguments, None
    leaves a driver out, `boot` are options of the board file.
    """
    monkeypatch.setattr(shell_module, "_PROMPT_S", 0.3)
    monkeypatch.setattr(shell_module, "_UBOOT_INTERRUPT_S", 0.3)
    monkeypatch.setattr(strategy_module, "_ASK_AGAIN_S", 1)
    monkeypatch.setattr(powering, "_ANSWER_S", 2)
    stack = contextlib.ExitStack()

    def open_it(boot=(), person=None, strategy="K3BootStrategy", resources=(), *, virtual=False, **drivers):
        data = yaml.safe_load((boards.ENV_DIR / "virtual.yaml").read_text())
        main = data["targets"]["main"]
        main["resources"] |= console_and_power(fake.port, switch.port) | dict(resources)
        main["options"]["boot"] |= dict(boot)
        if not virtual:
            del main["options"]["board"]["virtual"]  # its times would be as long as the host is slow
        for name, arguments in QUICKER.items():
            main["drivers"][name].update(QUICK[name] | arguments | drivers.pop(name, {}))
        for name, arguments in drivers.items():
            if arguments is None:
                del main["drivers"][name]
            else:  # before the strategy, which binds it
                main["drivers"] = {name: arguments, **main["drivers"]}
        if strategy == "BootStrategy":
            said = main["drivers"].pop("K3BootStrategy")
            main["drivers"][strategy] = {key: value for key, value in said.items() if key != "media"}
        path = tmp_path / "fake.yaml"
        path.write_text(yaml.safe_dump(data, sort_keys=False))
        environment = Environment(str(path))
        stack.callback(environment.cleanup)
        return LabgridBench(environment.get_target("main"), boards.load(path), person=person)

    with stack:
        yield open_it
