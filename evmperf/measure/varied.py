"""A variation on the running board: its commands after each boot, and the check that it applies.

A board without the requested variation gives wrong figures, so each failure is the lab's.
"""

from evmperf.boards.variation import Variation
from evmperf.measure import shellstep
from evmperf.measure.bench import Shell, Steps
from evmperf.model.errors import LabError

_COMMAND_S = 120
"""Seconds after which a command of a variation counts as hung."""


def apply(variation: Variation, shell: Shell, steps: Steps) -> None:
    """Run the commands of a variation in a freshly booted Linux; raises LabError."""
    for command in variation.commands:
        done = steps.run(shell, command, _COMMAND_S, quiet=True, label="run")
        if done.status:
            said = done.files.get(shellstep.LOG, "").strip().splitlines()
            raise LabError(
                f"run:{command}: ended with exit status {done.status} on the board"
                f"{f': {said[-1][:200]}' if said else ''}"
            )


def check(variation: Variation, command_line: str) -> None:
    """Raise LabError unless the running kernel has the requested arguments."""
    there = command_line.split()
    for word in variation.kernel_arguments.split():
        if word not in there:
            raise LabError(
                f"args:{word}: is not on the running kernel's command line ({command_line}): "
                f"check whether U-Boot overwrites the strategy's kernel_arguments_variable"
            )
