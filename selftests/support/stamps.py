"""Reading a bench's file `console.stamps`, whose form is in `evmperf_virtual.console`."""

from pathlib import Path


def read_stamps(path: Path) -> list[tuple[int, int, int, int]]:
    """Read a file of stamps: (offset, length in bytes, monotonic ns of arrival and of passing on) by chunk.

    Raises ValueError if it is not a file of stamps. A last line cut short is left out.
    """
    lines = path.read_bytes().split(b"\n")[:-1]
    return [
        (offset, length, came, passed)
        for offset, length, came, passed in (map(int, n.split()) for n in lines)
    ]
