"""Reading a bench's file `console.stamps`, whose form is in `evmperf_virtual.console`."""

from pathlib import Path

from evmperf_virtual.console import BASE, MAGIC, RECORD


def read_stamps(path: Path) -> list[tuple[int, int, int]]:
    """Read a file of stamps: (offset in bytes, length in bytes, monotonic time in ns) by chunk.

    Raises ValueError if it is not a file of stamps. A last record cut short is left out.
    """
    data = path.read_bytes()
    head = len(MAGIC) + BASE.size
    if not data.startswith(MAGIC) or len(data) < head:
        raise ValueError(f"{path} is not a console.stamps of version 1")
    (offset,) = BASE.unpack_from(data, len(MAGIC))
    body = memoryview(data)[head : head + (len(data) - head) // RECORD.size * RECORD.size]
    chunks = []
    for length, monotonic_ns in RECORD.iter_unpack(body):
        chunks.append((offset, length, monotonic_ns))
        offset += length
    return chunks
