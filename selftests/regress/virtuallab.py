"""A virtual EVM of one's own for the commands here that measure: its bench and its board file."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from evmperf.virtual import client, envfile, image

BOOT_S = 180
"""A boot that the load of this machine made slow is a boot all the same."""


@contextmanager
def board_file(variant: str, folder: Path) -> Iterator[Path]:
    """Run a bench of a variant; gives the board file, in `folder`. The bench ends here."""
    image.build(variant, progress=print)
    bench = client.Bench(f"regress{os.getpid()}")
    bench.start(variant, serial_port=0, power_port=0)
    try:
        file = folder / f"{variant}.yaml"
        ports = bench.ports
        envfile.write(
            envfile.source(variant), file, serial_port=ports.serial, power_port=ports.power
        )
        text, count = re.subn(r"((?:kernel|boot)_timeout): \d+", rf"\1: {BOOT_S}", file.read_text())
        assert count, f"{file} says no time-out of booting"
        file.write_text(text)
        yield file
    finally:
        bench.stop()
