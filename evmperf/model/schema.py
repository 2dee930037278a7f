"""The versions of what is on the spool: run.json and the records of results.jsonl.

The types are in `evmperf.model.run`, `results` and `records`. A field that is added with a default needs no
new version, anything else does: a reader refuses what is later than it. Whoever raises SCHEMA says here what
changed and keeps a recorded spool of the version before in selftests/data/spool.
"""

from collections.abc import Mapping

import msgspec

HISTORY: Mapping[int, str] = {
    1: "the first: result, boot, verdict, unknown",
    2: "a sample may have an error; what has its default is left out; readers ignore fields that "
    "they do not know",
}
"""Version to what changed with it. All of 1 is valid in 2, so nothing is converted."""

SCHEMA = max(HISTORY)
"""What this evmperf writes; it reads all up to that."""


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="record", tag=True, omit_defaults=True):
    """One line of results.jsonl."""


class Header(msgspec.Struct, frozen=True):
    """What every line begins with, whatever it is."""

    schema: int
    record: str = ""
