"""What a board's console looks like, read from the drivers' section of its file."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import yaml

from evmperf.boards.board import Board
from evmperf.boards.board import Loader as BoardLoader

_LOGIN = "login: "
_PROMPT = r"root@[^:\r\n]+:[^\r\n]*[#] "
_INIT_SHELL = r"[\r\n](?:\x1b\[\?2004h)?[^\r\n\[]{0,20}# "
_MEDIA = {
    "sd": ["setenv mmcdev 1", "setenv bootpart 1:2"],
    "emmc": ["setenv mmcdev 0", "setenv bootpart 0:2"],
}


@dataclass(frozen=True)
class Console:
    """Prompts (regular expressions), login, and U-Boot's words; defaults are the strategy's."""

    login_prompt: str
    prompt: str
    init_shell_prompt: str
    username: str
    password: str
    boot_command: str
    arguments_variable: str
    medium_commands: tuple[str, ...]
    host_prompt: str = r"[\$#] $"

    @classmethod
    def of(cls, board: Board) -> Self:
        """The console of a board."""
        data = yaml.load(board.file.read_text(encoding="utf-8"), Loader=BoardLoader)
        drivers: dict[str, Any] = data["targets"]["main"].get("drivers") or {}
        shell = drivers.get("EvmShellDriver") or {}
        strategy = drivers.get("K3BootStrategy") or {}
        medium = strategy.get("medium") or board.options.boot.medium
        return cls(
            login_prompt=strategy.get("login_prompt", _LOGIN),
            prompt=shell.get("prompt", _PROMPT),
            init_shell_prompt=strategy.get("init_shell_prompt", _INIT_SHELL),
            username=shell.get("username", "root"),
            password=shell.get("password") or "",
            boot_command=strategy.get("boot_command", "boot"),
            arguments_variable=strategy.get("kernel_arguments_variable", "optargs"),
            medium_commands=tuple(strategy.get("media", _MEDIA).get(medium, ())),
        )

    def boot_commands(self, kernel_arguments: str) -> list[str]:
        """What U-Boot is told to boot what is installed."""
        words = f"setenv {self.arguments_variable} {kernel_arguments}".strip()
        return [*self.medium_commands, words, self.boot_command]

    def prompt_after(self, kernel_arguments: str) -> str:
        """What ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt
