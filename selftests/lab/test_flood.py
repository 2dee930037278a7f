"""A board that says more than anybody can look at: what is kept, and that the rest is told."""

import socket
import threading
from pathlib import Path

from evmperf.boards.console.record import History, read
from evmperf.lab.stamper import StampedPort
from evmperf.model import limits

SENT = limits.QUEUE_BYTES + 64 * limits.MIB


def resident(pid):
    """Bytes of memory that a process has in use."""
    (line,) = [t for t in Path(f"/proc/{pid}/status").read_text().splitlines() if "VmHWM" in t]
    return int(line.split()[1]) << 10


def test_the_stamping_process_keeps_what_fits_and_says_what_it_cut():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(10)
        port = StampedPort("raw", "127.0.0.1", server.getsockname()[1], 115200, 3.0)
        board = server.accept()[0]
        before = resident(port._process.pid)
        piece = bytes(range(256)) * 256
        with board:
            # Nobody reads meanwhile: all of it must be taken from the board, and most be cut.
            board.settimeout(60)
            for _ in range(SENT // len(piece)):
                board.sendall(piece)
        used = resident(port._process.pid) - before
        kept = cut = 0
        guard = threading.Timer(60, port.close)
        guard.start()
        try:
            while True:
                _, bound, data = port.read()
                kept, cut = kept + len(data), cut + (0 if data else bound)
        except ConnectionError:
            pass
        finally:
            guard.cancel()
            port.close()
    assert kept + cut == SENT
    assert cut > 0
    assert kept > limits.QUEUE_BYTES / 2
    assert used < 2 * limits.QUEUE_BYTES


def test_the_record_of_a_run_ends_at_its_limit_but_not_the_lab_s_events(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "CONSOLE_LOG_BYTES", 10_000)
    history = History()
    history.open(tmp_path / "console.log")
    for number in range(1000):
        history.feed(b"x" * 100, number)
    history.event("power off")
    history.close()
    records = list(read(tmp_path / "console.log"))
    assert (tmp_path / "console.log").stat().st_size < 11_000
    assert [record.data for record in records if record.kind == "#"] == [
        b"console output is not kept from here on: 10000 bytes",
        b"power off",
    ]
    history.check()


def test_the_memory_of_a_boot_counts_small_records_at_what_they_take(monkeypatch):
    monkeypatch.setattr(limits, "BOOT_BYTES", 1 << 20)
    history = History()
    for number in range(50_000):
        history.feed(b"x", number)
    assert 1000 < len(history.records()) < 5000
    assert history.records()[-1].mono_ns == 49_999
