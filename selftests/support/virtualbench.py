"""A virtual EVM of one's own: a running bench, and the board file that leads to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evmperf_virtual import client, envfile, image


@contextmanager
def running(variant: str, name: str = "", qemu_options: Sequence[str] = ()) -> Iterator[client.LabClient]:
    """A bench of a variant with the power off, at free ports; it ends here."""
    image.build(variant, progress=lambda line: print(line, file=sys.stderr))
    bench = client.LabClient(f"{name or variant}{os.getpid()}")
    bench.start(variant, serial_port=0, power_port=0, qemu_options=qemu_options)
    try:
        yield bench
    finally:
        bench.stop()


def board_file(bench: client.LabClient, variant: str, folder: Path) -> Path:
    """Write the variant's board file with that bench's ports into a folder."""
    file, ports = folder / f"{variant}.yaml", bench.record
    envfile.write(envfile.source(variant), file, serial_port=ports.serial_port, power_port=ports.power_port)
    return file
