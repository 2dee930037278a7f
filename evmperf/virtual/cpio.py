"""Writing a cpio archive in the kernel's `newc` format, the same bytes for the same files.

The program cpio would need every file on disk, owned by root, to write the same.
"""

from __future__ import annotations

import stat


class CpioArchive:
    """A cpio archive in memory; owners are root, times are zero."""

    def __init__(self) -> None:
        self._data = bytearray()
        self._inode = 0

    def folder(self, name: str) -> None:
        """Add a folder."""
        self._add(name, b"", stat.S_IFDIR | 0o755)

    def file(self, name: str, content: bytes, mode: int) -> None:
        """Add a file with permission bits `mode`."""
        self._add(name, content, stat.S_IFREG | mode)

    def link(self, name: str, destination: str) -> None:
        """Add a symbolic link."""
        self._add(name, destination.encode(), stat.S_IFLNK | 0o777)

    def finish(self) -> bytes:
        """Return the archive's bytes."""
        self._inode = -1
        self._add("TRAILER!!!", b"", 0)
        return bytes(self._data)

    def _add(self, name: str, content: bytes, mode: int) -> None:
        self._inode += 1
        encoded = name.encode() + b"\0"
        # Inode, mode, uid, gid, links, time, size, device (2), special device (2), name, checksum.
        fields = (self._inode, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(encoded), 0)
        self._data += b"070701" + b"".join(b"%08X" % field for field in fields) + encoded
        self._pad()
        self._data += content
        self._pad()

    def _pad(self) -> None:
        self._data += bytes(-len(self._data) % 4)
