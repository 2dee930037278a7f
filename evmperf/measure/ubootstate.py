"""What U-Boot says of the device that its timed rows used: its mode, clock and lines."""

import re

from evmperf.boards.board import Board
from evmperf.measure.bench import Shell
from evmperf.model import limits
from evmperf.model.errors import ToolError
from evmperf.model.state import State, Value

_SECONDS = 10.0
_MOST = 60
"""Lines of an answer that are read."""
_LINE = re.compile(r"\s*([A-Z][\w /.-]{1,40}?)\s*[:=]\s*(\S.*)")
_FLASH = re.compile(r"SF: Detected (.*)")
_QUESTIONS = {"emmc": "mmc info", "mmcsd": "mmc info", "ospi": "sf probe {bus}", "ufs": "scsi info"}


def ask(shell: Shell, board: Board, driver: str) -> State | None:
    """The state of a driver's device in U-Boot, after its commands; None for drivers that have none there.

    Raises BoardError or LabError as the shell does.
    """
    if driver not in _QUESTIONS:
        return None
    question = _QUESTIONS[driver].format(bus=board.options.ospi.uboot_bus)
    word = question.split()[0]
    try:
        reply = shell.run(question, _SECONDS)
    except ToolError as error:
        return State(missing=str(error))
    if reply.status:
        return State(missing=f"no {word} in U-Boot")
    return State(shown=parse(word, reply.text))


def parse(word: str, text: str) -> dict[str, Value]:
    """The values of U-Boot's answer (cmd/mmc.c, cmd/sf.c): `uboot.mmc.Bus_Width`, `uboot.sf`."""
    shown: dict[str, Value] = {}
    for line in text.splitlines()[:_MOST]:
        if flash := _FLASH.search(line):
            shown["uboot.sf"] = flash[1].strip()[: limits.LOOK_CHARS]
        elif pair := _LINE.fullmatch(line):
            name = re.sub(r"[^\w.-]+", "_", pair[1])
            shown.setdefault(f"uboot.{word}.{name}", pair[2].strip()[: limits.LOOK_CHARS])
    return shown
