"""The board as a USB disk, a file with a FAT in its memory, read and written by a host: the tester, or the
board itself where its controller is `dummy_hcd`'s pair.
"""

from collections.abc import Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile, noted
from evmperf.benchmarks.step import CleanUp, Measure, Plan, Prepare, Step, Where, reading_of
from evmperf.benchmarks.tools import dd
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.shelltext import ShellTexts
from evmperf.model.units import Unit

BACKING = "/dev/shm/evmperf-gadget"
"""The disk, a file on the board."""
_CONFIGFS = "/sys/kernel/config"
GADGET = f"{_CONFIGFS}/usb_gadget/evmperf"
"""What the kernel knows of the gadget (Documentation/usb/gadget_configfs.rst)."""
_SPEEDS = {"high": 480, "super": 5000}
"""Mbit/s by the kernel's word for the speed, as sysfs has it."""
SHELL = ShellTexts(__file__)
_WAIT_S = 30


def _benchmark(speed: str, side: str) -> Benchmark:
    """A table of one row."""

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        blocks, usb, serial = int(case.params["blocks"]), board.options.usb, f"evmperf-{board.name}"
        # Per board: the tester may serve several.
        folder = f"/tmp/{serial}-gadget"
        about = {"gadget": GADGET, "backing": BACKING, "configfs": _CONFIGFS, "folder": folder}
        about |= {
            "file": f"{folder}/{blocks}mb",
            "speed": speed,
            "serial": serial,
            "mbit": str(_SPEEDS[speed]),
        }
        # Of the modules, only dummy_hcd has to be told.
        faster = " is_super_speed=Y" if (usb.gadget_module, speed) == ("dummy_hcd", "super") else ""
        about["load"] = f"modprobe {usb.gadget_module}{faster}; " if usb.gadget_module else ""
        about["unload"] = SHELL("unload", module=usb.gadget_module) if usb.gadget_module else ""
        about |= {"udc": f"udc={usb.gadget_controller}"} if usb.gadget_controller else {}

        def text(name: str) -> str:
            return SHELL(name, **about, blocks=blocks, mib=blocks + 10, wait_s=_WAIT_S)

        timed = f'{text(side)} 2>"$OUT/{dd.TEXT_FILE}"'
        parse = reading_of("throughput", dd.TEXT_FILE, dd.throughput, blocks << 20)
        host, slow = Where(usb.gadget_host), 60 + blocks * 10
        return [
            Prepare("forget", text("forget"), 60, 0.5, where=host),
            Prepare("plug", text("plug"), 60, 1),
            Prepare("mount", text(f"before_{side}"), _WAIT_S + slow, 2, where=host),
            Measure("transfer", timed, slow, blocks / 30, parse=parse, where=host),
            CleanUp("unmount", text("forget"), 60, 0.5, where=host),
            CleanUp("unplug", text("remove"), 60, 0.5),
        ]

    return Benchmark(
        name=f"usbdev_{speed[0]}s_slave_{side}",
        driver="usb",
        title=f"USBDEVICE {speed.upper()}SPEED SLAVE_{side.upper()}_THROUGHPUT",
        section=("USB Driver", "USB Device Controller"),
        # dummy_hcd's high speed is one by name only.
        metrics=(
            Metric("throughput", Unit.MEGABYTE_PER_SECOND, Direction.HIGHER, "Throughput", 0.1, 2000.0),
        ),
        profiles=Profile.crossed({"blocks": [150]}, {"blocks": [8]}),
        steps=steps,
        tools=("dd", "mkfs.vfat"),
        options=(("usb", "gadget_host"),),
        conditions=noted("usb", "gadget_host", "gadget_controller"),
    )


BENCHMARKS = tuple(_benchmark(speed, side) for speed in _SPEEDS for side in ("read", "write"))
