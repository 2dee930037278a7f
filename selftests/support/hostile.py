"""What a hostile board sends in place of a step's output."""

import base64
import gzip
import io
import tarfile

HEAD = "step 0 10.25 12.75\n"

ESCAPES = (
    "x/../../../../../../../../home/.ssh/authorized_keys",
    "../../../../home/.bashrc",
    "/home/.bashrc",
    "..",
    "x/..",
    ".bashrc",
    "a/b",
    "x\x1b]0;title\x07",
    "x\n",
    "x\r",
    "-rf",
    "",
    "x" * 300,
    "\N{FULLWIDTH FULL STOP}\N{DIVISION SLASH}",
)
"""Names of files that are none."""


def member(name, data=b"owned\n", **changes):
    """An entry of a tar, with attributes of tarfile's changed."""
    entry = tarfile.TarInfo(name)
    entry.size = len(data)
    for key, value in changes.items():
        setattr(entry, key, value)
    return entry, data


def tar(*entries):
    """A tar of such entries."""
    target = io.BytesIO()
    with tarfile.open(fileobj=target, mode="w", format=tarfile.GNU_FORMAT) as writer:
        for entry, data in entries:
            writer.addfile(entry, io.BytesIO(data))
    return target.getvalue()


def answer(archive):
    """A step's answer with this archive in it."""
    return HEAD + base64.encodebytes(gzip.compress(archive)).decode()
