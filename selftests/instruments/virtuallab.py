"""A virtual EVM of one's own for the commands here that measure: its bench and its board file."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from selftests.support import virtualbench

BOOT_S = 180
"""A boot that the load of this machine made slow is a boot all the same."""


@contextmanager
def board_file(variant: str, folder: Path) -> Iterator[Path]:
    """Run a bench of a variant; gives the board file, in `folder`. The bench ends here."""
    with virtualbench.running(variant, "regress") as bench:
        file = virtualbench.board_file(bench, variant, folder)
        text, count = re.subn(r"((?:kernel|boot)_timeout): \d+", rf"\1: {BOOT_S}", file.read_text())
        assert count, f"{file} says no time-out of booting"
        file.write_text(
            text.replace("kernel_timeout:", f"silence_timeout: {BOOT_S}\n        kernel_timeout:")
        )
        yield file
