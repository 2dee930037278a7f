"""evmperf's own small program for boards where nothing is installed: `gauge.c` says what it measures, `make
gauge` compiles it for the machines whose names (`uname -m`) its programs here have.
"""

import base64
import gzip
import re
from pathlib import Path

from evmperf.benchmarks.tools._checks import above_zero, refuse
from evmperf.model.errors import UsageError
from evmperf.model.shelltext import ShellTexts

NAME = "evmperf-gauge"
TEXT_FILE = "gauge.txt"
MACHINES = ("aarch64", "armv7l", "riscv64", "x86_64")

_HERE = Path(__file__).parent
_SHELL = ShellTexts(str(_HERE / "gauge"))
_FIGURE = re.compile(r"(\w+) (\d+(?:\.\d+)?(?:e\+\d+)?) (\S+)")


def machine(kernel: str) -> str:
    """Which program runs on a kernel that calls its machine so, "" for none."""
    name = {"armv8l": "armv7l"}.get(kernel, kernel)
    return name if name in MACHINES else ""


def command(machine_name: str, words: str) -> str:
    """Shell text that brings the program to the board, runs it, leaves what it printed in TEXT_FILE, and
    removes it.
    """
    if not machine(machine_name):
        raise UsageError(
            f"evmperf's own program is not built for the machine {machine_name or 'of this board'}"
        )
    program = (_HERE / f"{machine_name}.bin").read_bytes()
    packed = base64.b64encode(gzip.compress(program, mtime=0)).decode()
    return _SHELL("run", packed=packed, words=words, text_file=TEXT_FILE)


def figure(text: str, program: str, name: str, unit: str) -> float:
    """The figure of that name in that unit, of lines `NAME VALUE UNIT` of a program of evmperf's; raises
    RefusedOutput.
    """
    first, *lines, last = text.splitlines() if text.count("\n") > 1 else ("", "")
    whole = first == f"{program} 1" and last == "end" and text.endswith("\n")
    refuse(not whole, f"this is not the whole output of {program} 1", text)
    matches = [_FIGURE.fullmatch(line) for line in lines]
    values = {match[1]: (match[2], match[3]) for match in matches if match}
    once = all(matches) and len(values) == len(matches)
    refuse(not once, f"{program} printed no figure where one belongs, or one twice", text)
    value, printed_unit = values.get(name, ("", ""))
    refuse(printed_unit != unit, f"{program} printed no {name} in {unit}", text)
    return above_zero(value, program, text)


def has(text: str, name: str) -> bool:
    """Whether the program printed that figure, which not every board has."""
    return f"\n{name} " in text
