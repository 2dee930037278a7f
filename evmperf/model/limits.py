"""Size limits for the output of boards, logs, servers and images (docs/error-kinds.md). Excess is cut, and
the record or the message says so. A serial line of 115200 baud carries 40 MiB an hour.

What a record of a run states beyond the limits of its numbers is damaged: it is named and left out.
"""

import re
from typing import Annotated

import msgspec

REAL = 1e18
"""Of a measured number in its unit: sums and squares of such numbers do not overflow."""
_COUNT = 1 << 62
"""Of whole numbers, and of nanoseconds since the epoch (the year 2116); databases have 63 bits."""

Real = Annotated[float, msgspec.Meta(ge=-REAL, le=REAL)]
Count = Annotated[int, msgspec.Meta(ge=0, le=_COUNT)]
Ordinal = Annotated[int, msgspec.Meta(ge=0, le=(1 << 31) - 1)]
"""A version, a repetition, a line."""
Status = Annotated[int, msgspec.Meta(ge=-1000, le=1000)]
"""The exit status of a process, negative for a signal."""

MIB = 1 << 20

REPLY_BYTES = 32 * MIB
"""Of what one command prints on a console."""
STEP_BYTES = 64 * MIB
"""Of a step's files, unpacked."""
STEP_FILES = 1000
"""Files that one step may leave."""
LOOK_LINES = 2000
"""Of a look at the board's state; eight cores and all there is make 500."""
LOOK_CHARS = 400
"""Of one value in it."""

QUEUE_BYTES = 32 * MIB
"""Of a console that is stamped and waits for the measuring process."""
UNREAD_BYTES = 16 * MIB
"""Of a console that nobody has looked at."""
BOOT_BYTES = 64 * MIB
"""Of memory for one boot's console; what is older stays in the file only."""
CONSOLE_LOG_BYTES = 1024 * MIB
"""Of a run's console.log."""

MESSAGE_CHARS = 4000
"""Of a failure's sentence."""

RUN_BYTES = 16 * MIB
"""Of a run's run.json: one of a year's boards has some 100 kB."""
CASE_BYTES = 16 * MIB
"""Of a file beside a guide: objects in memory are twenty times as large as their shortest JSON."""

YAML_BYTES = MIB // 4
"""Of a board file or a plan, which Python reads in a second."""
GUIDE_BYTES = 32 * MIB
"""Of the text of a guide."""

FOREIGN_BYTES = 256 * MIB
"""Of a file of figures that others measured."""

LAVA_JOB_BYTES = 16 * MIB
"""Of a job's definition; all benchmarks of one board make 1 MB."""
LAVA_LOG_BYTES = 256 * MIB
"""Of the log of one LAVA job."""
LAVA_LINE_CHARS = MIB
"""Of one line of such a log."""

IMAGE_BYTES = 256 << 30
"""Of an image, unpacked."""
DOWNLOAD_BYTES = 128 << 30
"""Of an image as a server has it."""


def mib(count: int) -> str:
    """A number of bytes for people."""
    return f"{count / MIB:g} MiB"


_WORD = re.compile(r"\S{1000,}")


def short_words(text: str) -> str:
    """A text for people, without the rest of words that nobody reads to their end."""
    return _WORD.sub(lambda match: shortened(match[0], 200), text)


def shortened(text: str, limit: int = MESSAGE_CHARS) -> str:
    """A text of at most about `limit` characters, which says how many it has lost."""
    if len(text) <= limit:
        return text
    return f"{text[:limit]}... ({len(text) - limit} more characters)"
