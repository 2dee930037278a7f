"""A bench on a scripted board behind a real console and power switch."""

import pytest
import yaml
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.boards.console import powering
from evmperf.lab import shell as shell_module
from evmperf.lab import strategy as strategy_module
from evmperf.lab.bench import LabgridBench

SOURCE = boards.ENV_DIR / "virtual.yaml"


@pytest.fixture
def open_bench(tmp_path, fake, switch, monkeypatch):
    """A function that gives a bench on the fake board; keywords are a driver's arguments, None
    leaves a driver out, `power` is the option of the board file.
    """
    monkeypatch.setattr(shell_module, "_PROMPT_S", 0.3)
    monkeypatch.setattr(shell_module, "_UBOOT_INTERRUPT_S", 0.3)
    monkeypatch.setattr(strategy_module, "_ASK_AGAIN_S", 1)
    monkeypatch.setattr(powering, "_ANSWER_S", 2)
    environments = []

    def open_it(
        power="", flow="", person=None, strategy="K3BootStrategy", resources=None, *, virtual=False, **drivers
    ):
        data = yaml.safe_load(SOURCE.read_text())
        main = data["targets"]["main"]
        main["resources"]["NetworkSerialPort"]["port"] = fake.port
        main["resources"]["NetworkPowerPort"]["host"] = f"http://127.0.0.1:{switch.port}/power/{{index}}"
        main["resources"] |= resources or {}
        quick = {
            "K3BootStrategy": {
                "uboot_timeout": 10,
                "kernel_timeout": 10,
                "boot_timeout": 10,
                "retries": 0,
                "roots": {},
                "media": {"virtio": ["setenv mmcdev 1", "setenv bootpart 1:2"]},
            },
            "EvmShellDriver": {"login_timeout": 5, "await_login_timeout": 1},
            "StampedSerialDriver": {"timeout": 2.0, "reconnect": 5.0},
        }
        for name, arguments in quick.items():
            main["drivers"][name].update({**arguments, **drivers.pop(name, {})})
        if not virtual:
            del main["options"]["board"]["virtual"]  # its times would be as long as the host is slow
        if power:
            main["options"]["boot"]["power"] = power
        if flow:
            main["options"]["boot"]["flow"] = flow
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
        environments.append(environment)
        target = environment.get_target("main")
        return LabgridBench(target, boards.load(path), person=person)

    yield open_it
    for environment in environments:
        environment.cleanup()
