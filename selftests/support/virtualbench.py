"""A virtual EVM of one's own: a running bench, and the board file that leads to it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from evmperf_virtual import client, envfile, image
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.lab.provision.content import sha256
from evmperf.measure.bench import Shell


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


@contextmanager
def reached(file: Path, board: Board | None = None) -> Iterator[LabgridBench]:
    """evmperf's bench on the board of a board file, read as `board` if given; the power is off afterwards."""
    environment = Environment(str(file))
    bench = LabgridBench(environment.get_target(), board or boards.load(file))
    try:
        yield bench
    finally:
        bench.off()
        environment.cleanup()


def starts(shell: Shell, action: str, script: str) -> None:
    """Let a board run a script at each boot, by an `action` of inittab; the network is the script's."""
    shell.run(f"mkdir -p /root/www; cat >/root/ends.sh <<'EOF'\n{script}EOF\nchmod +x /root/ends.sh", 60)
    shell.run(f"echo '::{action}:/root/ends.sh' >>/etc/inittab", 60)
    reply = shell.run("sed -i /^udhcpc/d /etc/init.d/rcS; sync; ls /root", 60)
    assert "ends.sh" in reply.text


def board_file(bench: client.LabClient, variant: str, folder: Path) -> Path:
    """Write the variant's board file with that bench's ports into a folder."""
    file, ports = folder / f"{variant}.yaml", bench.record
    envfile.write(envfile.source(variant), file, serial_port=ports.serial_port, power_port=ports.power_port)
    return file


def disks(bench: client.LabClient) -> dict[str, str]:
    """The SHA-256 of what is on each disk, but for that of the firmware, which the boot ROM writes."""
    files = (bench.folder / "disks").glob("*.img")
    return {file.stem: sha256(file) for file in files if file.stem != "firmware"}
