"""The modes that TI's own checks demand of a board's eMMC and card, with their source: data in modes.yaml."""

import re
from collections.abc import Iterator
from pathlib import Path

import msgspec


class ExpectedMode(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A mode that TI expects of the boards whose names begin as `boards` matches, as `HS200`. `silicon` has
    the mode by silicon revision where that differs, `but` is what another source says.
    """

    boards: str
    mode: str
    source: str
    silicon: dict[str, str] = {}
    but: str = ""

    def __str__(self) -> str:
        return f"{self.mode} ({self.source}{'; ' if self.but else ''}{self.but})"


class LesserMode(msgspec.Struct, frozen=True):
    """A board in a mode below the expected one, which carries `times` as much."""

    expected: ExpectedMode
    mode: str
    times: float

    def __str__(self) -> str:
        return f"TI's own check of this board expects {self.expected}; it runs at {self.mode}"


class _Data(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What modes.yaml has; a mode is the kernel's name as a pattern, ours, and bytes a second."""

    emmc: list[ExpectedMode]
    mmcsd: list[ExpectedMode]
    lanes: dict[str, int]
    modes: list[tuple[str, str, int]]


_DATA = msgspec.yaml.decode(Path(__file__).with_suffix(".yaml").read_bytes(), type=_Data, strict=False)
_RATES = {name: rate for _, name, rate in _DATA.modes}


def expected(board: str, driver: str, silicon: str = "") -> ExpectedMode | None:
    """What TI expects of a board's `emmc` or `mmcsd`, by the board's and the silicon's names (`SR1.1`); None
    for other drivers, and for boards of which TI's checks say nothing.
    """
    modes = {"emmc": _DATA.emmc, "mmcsd": _DATA.mmcsd}.get(driver, [])
    mode = next((one for one in modes if re.match(one.boards, board)), None)
    if mode is None or silicon not in mode.silicon:
        return mode
    return msgspec.structs.replace(mode, mode=mode.silicon[silicon], source=f"{mode.source}; {silicon}")


def named(timing: str) -> str:
    """A mode's name (`HS200`) by the kernel's line of the bus (`9 (mmc HS200)`); "" for an unknown one."""
    return next((name for pattern, name, _ in _DATA.modes if re.search(pattern, timing)), "")


def lesser(board: str, driver: str, timing: str, silicon: str = "") -> LesserMode | None:
    """What is said of a board whose bus has the kernel's `timing` spec and could, by TI's own check, carry
    more; None where the check passes, or nothing is known.
    """
    best, mode = expected(board, driver, silicon), named(timing)
    if best is None or not mode or _RATES[mode] >= _RATES[best.mode]:
        return None
    return LesserMode(best, mode, _RATES[best.mode] / _RATES[mode])


def lanes(board: str) -> int:
    """The lanes of PCIe that TI expects of a board at most."""
    return next((count for names, count in _DATA.lanes.items() if re.match(names, board)), 1)


QUESTION = (
    "for h in /sys/class/mmc_host/mmc*; do m=/sys/kernel/debug/${h##*/}/ios; [ ! -r $m ] || "
    "echo mode: $(cat $h/mmc*/type) $(sed -n 's/^timing spec:[[:space:]]*//p' $m); done 2>/dev/null; "
    "echo silicon: $(cat /sys/devices/soc0/revision 2>/dev/null)"
)
"""Shell text that prints each card's kind with its mode, and the silicon's revision; it changes nothing."""
_KINDS = {"MMC": "emmc", "SD": "mmcsd"}


def lesser_modes(board: str, printed: str) -> Iterator[tuple[str, LesserMode]]:
    """The drivers of a board that are in a lesser mode than TI expects, by what QUESTION printed."""
    silicon = re.search(r"^silicon: (\S{1,20})", printed, re.MULTILINE)
    for kind, timing in re.findall(r"^mode: (MMC|SD) (.{1,60})$", printed, re.MULTILINE):
        if mode := lesser(board, _KINDS[kind], timing, silicon[1] if silicon else ""):
            yield _KINDS[kind], mode
