"""What a board file may say of its boots: the arguments of the boot strategy, and their defaults."""

import enum
from collections.abc import Mapping
from typing import Any

import attr
from attr.validators import deep_mapping, instance_of
from labgrid.strategy import Strategy

from evmperf.boards import prompts
from evmperf.boards.console import booted

_KERNEL_START = r"Starting kernel|EFI stub: |Linux version \d"

MEDIA = deep_mapping(instance_of(str), instance_of(list))


def _text(default: str) -> Any:
    return attr.ib(default=default, validator=instance_of(str))


def _whole(default: int) -> Any:
    return attr.ib(default=default, validator=instance_of(int))


class BoardState(enum.Enum):
    """What the board is known to be doing."""

    unknown = 0
    off = 1
    uboot = 2
    booted = 3
    shell = 4
    provisioned = 5
    """Off, and what has to be done before power-on is done."""


@attr.s(eq=False)
class BootOptions(Strategy):  # type: ignore[misc]
    """What differs from board to board, as the board file has it.

    Args:
        medium: what to boot from; default is options.boot.medium of the board file
        media: U-Boot commands that choose each medium, before `boot_command`
        kernel_arguments_variable: U-Boot variable whose words join the kernel's command line
        roots: regular expressions of what the root of the running system is like for each medium
            (evmperf.boards.console.booted has the defaults); a medium without one is not checked
        login_prompt, init_shell_prompt: what ends a boot, as regular expressions
        silence_timeout: seconds without a byte after which a boot loader is taken to hang, and
            after which a newline asks Linux for its prompt again
        power_timeout, uboot_timeout, kernel_timeout, boot_timeout: seconds for the power switch or the
            reset line, from power-on to the U-Boot prompt, from the boot command to "Starting kernel", and
            from there to the prompt
        hand_timeout: seconds for a person who works the power
        retries: power cycles after a failed boot before giving up; boot time has none, and gives up
            after options.boot.max_failures failed cycles
    """

    bindings = {  # noqa: RUF012  # Labgrid's form
        "power": {"PowerProtocol", None},
        "reset_line": {"ResetProtocol", None},
        "console": {"ConsoleProtocol", None},
        "uboot": {"UBootDriver", None},
        "shell": {"ShellDriver", None},
        "ssh": {"SSHDriver", None},
    }
    # What Labgrid binds; None where the board file has no such driver.
    power: Any
    reset_line: Any
    console: Any
    uboot: Any
    shell: Any
    ssh: Any
    target: Any
    logger: Any

    stated: Mapping[str, Any] = attr.ib(factory=dict, init=False)
    """Options of the section `boot` that stand elsewhere than in `options`."""
    status: BoardState = attr.ib(default=BoardState.unknown)
    medium: str = _text("")
    media: dict[str, list[str]] = attr.ib(factory=dict, validator=MEDIA)
    boot_command: str = _text(prompts.BOOT_COMMAND)
    kernel_arguments_variable: str = _text(prompts.KERNEL_ARGUMENTS_VARIABLE)
    kernel_start: str = _text(_KERNEL_START)
    roots: dict[str, str] = attr.ib(factory=lambda: dict(booted.ROOTS), validator=instance_of(dict))
    silence_timeout: int = _whole(20)
    login_prompt: str = _text(prompts.LOGIN_PROMPT)
    init_shell_prompt: str = _text(prompts.INIT_SHELL_PROMPT)
    uboot_timeout: int = _whole(60)
    power_timeout: int = _whole(60)
    kernel_timeout: int = _whole(60)
    boot_timeout: int = _whole(180)
    hand_timeout: int = _whole(600)
    retries: int = _whole(2)

    def option(self, key: str) -> str:
        """An option of the board file's section `boot`, "" where it does not say."""
        env = self.target.env
        boot = env.config.get_target_option(self.target.name, "boot", {}) if env else {}
        boot = {**boot, **self.stated} if isinstance(boot, dict) else self.stated
        return str(boot.get(key, ""))

    def chosen_medium(self) -> str:
        """What the board is to boot from."""
        return self.medium or self.option("medium")

    def prompt_after(self, kernel_arguments: str) -> str:
        """The regular expression of what ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt
