"""The board as a USB disk: a mass storage gadget on its device port, read and written by a host.

The disk is a file in the board's memory, so that USB is what is measured, with a FAT that the
host mounts. The host is the machine at the other end of the cable, the tester, or the board itself
where its controller is `dummy_hcd`'s pair.
"""

from collections.abc import Callable, Sequence

from evmperf.benchmarks.benchmark import Benchmark, Profile, noted
from evmperf.benchmarks.step import CleanUp, Measure, Plan, Prepare, Step, Where, reading_of
from evmperf.boards.board import Board
from evmperf.model.results import Case, Direction, Metric
from evmperf.model.units import Unit
from evmperf.tools import dd

BACKING = "/dev/shm/evmperf-gadget"
"""The disk, a file on the board."""
_CONFIGFS = "/sys/kernel/config"
GADGET = f"{_CONFIGFS}/usb_gadget/evmperf"
"""What the kernel knows of the gadget (Documentation/usb/gadget_configfs.rst)."""
_FUNCTION = "functions/mass_storage.0"
_SPEEDS = {"high": 480, "super": 5000}
"""Mbit/s by the kernel's word for the speed, as sysfs has it."""

_WAIT_S = 30


def _benchmark(
    speed: str, side: str, transfer: Callable[[str, int], str], before: Callable[[str, int], str]
) -> Benchmark:
    """A table of one row; `before` and `transfer` are the host's shell text for a file and its MiB."""

    def steps(board: Board, case: Case, _: Plan) -> Sequence[Step]:
        blocks = int(case.params["blocks"])
        host = Where(board.options.usb.gadget_host)
        serial = f"evmperf-{board.name}"
        # Per board: the tester may serve several.
        folder = f"/tmp/{serial}-gadget"
        file = f"{folder}/{blocks}mb"
        slow = 60 + blocks * 10
        forget = (
            f"if mountpoint -q {folder}; then umount {folder} || exit; fi; "
            f"if [ -d {folder} ]; then rmdir {folder}; fi"
        )
        remove = _remove_command(board)
        find = f"set -e; {find_command(serial, speed)}"
        mount = f"{find}; mkdir -p {folder}; mount -t vfat /dev/$disk {folder}"
        timed = f'{transfer(file, blocks)} 2>"$OUT/{dd.TEXT_FILE}"'

        parse = reading_of("throughput", dd.TEXT_FILE, dd.throughput, blocks << 20)
        return [
            # A killed run may have left its disk plugged in, and mounted.
            Prepare("forget", forget, 60, 0.5, where=host),
            Prepare("plug", f"{remove}; {_plug_command(board, serial, blocks + 10, speed)}", 60, 1),
            Prepare("mount", f"{mount}; {before(file, blocks)}", _WAIT_S + slow, 2, where=host),
            Measure("transfer", timed, slow, blocks / 30, parse=parse, where=host),
            CleanUp("unmount", forget, 60, 0.5, where=host),
            CleanUp("unplug", remove, 60, 0.5),
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
        profiles=Profile.both("blocks", [150], [8]),
        steps=steps,
        tools=("dd", "mkfs.vfat"),
        options=(("usb", "gadget_host"),),
        conditions=noted("usb", "gadget_host", "gadget_controller"),
    )


def _remove_command(board: Board) -> str:
    """Shell text that takes the gadget away, whole or half made, if there is one."""
    module = board.options.usb.gadget_module
    unload = f"; if [ -d /sys/module/{module} ]; then modprobe -r {module}; fi" if module else ""
    return (
        # Each part asks for itself: a killed run may have left any of them.
        f"if [ -d {GADGET} ]; then cd {GADGET}; "
        "if [ -n \"$(cat UDC)\" ]; then echo '' >UDC || exit; fi; "
        "rm -f configs/c.1/mass_storage.0; "
        f"for d in configs/c.1 {_FUNCTION} strings/0x409; do "
        "if [ -d $d ]; then rmdir $d || exit; fi; done; "
        f"cd /; rmdir {GADGET} || exit; fi; rm -f {BACKING}{unload}"
    )


def _plug_command(board: Board, serial: str, mib: int, speed: str) -> str:
    controller = board.options.usb.gadget_controller
    module = board.options.usb.gadget_module
    # Of the modules, only dummy_hcd has to be told.
    faster = " is_super_speed=Y" if (module, speed) == ("dummy_hcd", "super") else ""
    load = f"modprobe {module}{faster}; " if module else ""
    choose = (
        f"udc={controller}; "
        if controller
        else "set -- /sys/class/udc/*; udc=${1##*/}; "
        '[ $# = 1 ] || { echo "several USB device controllers ($*): name one in '
        'usb.gadget_controller of the board file"; exit 3; }; '
    )
    return (
        f"set -e; {load}{choose}"
        '[ -e "/sys/class/udc/$udc" ] || { echo "no USB device controller: check that the port '
        'is in peripheral mode"; exit 3; }; '
        # Built in, it is no module.
        "modprobe -q usb_f_mass_storage || true; "
        f"mountpoint -q {_CONFIGFS} || mount -t configfs configfs {_CONFIGFS}; "
        f"truncate -s {mib}M {BACKING}; mkfs.vfat {BACKING} >/dev/null; "
        f"mkdir {GADGET}; cd {GADGET}; echo 0x1d6b >idVendor; echo 0x0104 >idProduct; "
        f"[ ! -e max_speed ] || echo {speed}-speed >max_speed; "
        f"mkdir strings/0x409; echo {serial} >strings/0x409/serialnumber; "
        f"mkdir {_FUNCTION}; echo {BACKING} >{_FUNCTION}/lun.0/file; "
        f"mkdir configs/c.1; ln -s {_FUNCTION} configs/c.1/; echo $udc >UDC"
    )


def find_command(serial: str, speed: str = "high") -> str:
    """Shell text that sets `disk` to the disk of that serial number; fails at another speed."""
    return (
        f"tries={_WAIT_S}; while :; do set --; speed=; for block in /sys/block/sd*; do "
        'd=$(readlink -f "$block/device" || true); '
        'until [ -z "$d" ] || [ -r "$d/serial" ]; do d=${d%/*}; done; '
        f'if [ -n "$d" ] && [ "$(cat "$d/serial")" = {serial} ]; then '
        'set -- "$@" "${block##*/}"; speed=$(cat "$d/speed"); fi; done; '
        "[ $# = 0 ] && [ $tries -gt 0 ] || break; tries=$((tries - 1)); sleep 1; done; "
        f'[ $# = 1 ] || {{ echo "$# USB disks with the serial number {serial} after {_WAIT_S} s '
        'instead of one: check its cable to the board"; exit 3; }; disk=$1; '
        f'[ "$speed" = {_SPEEDS[speed]} ] || {{ echo "the disk is connected at $speed Mbit/s '
        f'instead of {_SPEEDS[speed]}"; exit 3; }}; '
        # Hot plug scripts mount what is plugged in, and with sync.
        'while grep -q "^/dev/$disk " /proc/mounts; do umount "/dev/$disk"; done'
    )


BENCHMARKS = tuple(
    _benchmark(speed, side, transfer, before)
    for speed in _SPEEDS
    for side, transfer, before in (
        (
            "read",
            lambda file, mib: (
                f"echo 3 >/proc/sys/vm/drop_caches; dd if={file} of=/dev/null bs=1M count={mib}"
            ),
            lambda file, mib: f"dd if=/dev/zero of={file} bs=1M count={mib} conv=fsync",
        ),
        (
            "write",
            lambda file, mib: f"rm -f {file}; dd if=/dev/zero of={file} bs=1M count={mib} oflag=direct",
            lambda file, mib: "true",
        ),
    )
)
