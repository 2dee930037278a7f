"""What a board's console looks like, read from the drivers' section of its file."""

from dataclasses import dataclass
from typing import Self

from evmperf.boards import prompts
from evmperf.boards.board import Board


@dataclass(frozen=True)
class JobConsole:
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
        shell = board.drivers.get("EvmShellDriver") or {}
        strategy = board.strategy
        medium = strategy.get("medium") or board.options.boot.medium
        return cls(
            login_prompt=strategy.get("login_prompt", prompts.LOGIN_PROMPT),
            prompt=shell.get("prompt", prompts.SHELL_PROMPT),
            init_shell_prompt=strategy.get("init_shell_prompt", prompts.INIT_SHELL_PROMPT),
            username=shell.get("username", prompts.USERNAME),
            password=shell.get("password") or "",
            boot_command=strategy.get("boot_command", prompts.BOOT_COMMAND),
            arguments_variable=strategy.get("kernel_arguments_variable", prompts.KERNEL_ARGUMENTS_VARIABLE),
            medium_commands=tuple(strategy["media"].get(medium, ())),
        )

    def boot_commands(self, kernel_arguments: str) -> list[str]:
        """What U-Boot is told to boot what is installed."""
        words = f"setenv {self.arguments_variable} {kernel_arguments}".strip()
        return [*self.medium_commands, words, self.boot_command]

    def prompt_after(self, kernel_arguments: str) -> str:
        """What ends a boot with these kernel arguments."""
        return self.init_shell_prompt if "init=" in kernel_arguments else self.login_prompt
