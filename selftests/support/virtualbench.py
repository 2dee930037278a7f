"""A virtual EVM of one's own: a running bench, and the board file that leads to it."""

import os
import sys
from contextlib import contextmanager

from evmperf_virtual import client, envfile, image
from labgrid import Environment

from evmperf.boards import board as boards
from evmperf.lab.bench import LabgridBench
from evmperf.lab.provision.content import sha256


@contextmanager
def running(variant, name="", qemu_options=()):
    """A bench of a variant with the power off, at free ports; it ends here."""
    image.build(variant, progress=lambda line: print(line, file=sys.stderr))
    bench = client.LabClient(f"{name or variant}{os.getpid()}")
    bench.start(variant, serial_port=0, power_port=0, qemu_options=qemu_options)
    try:
        yield bench
    finally:
        bench.stop()


@contextmanager
def reached(file, board=None):
    """evmperf's bench on the board of a board file, read as `board` if given; the power is off afterwards."""
    environment = Environment(str(file))
    bench = LabgridBench(environment.get_target(), board or boards.load(file))
    try:
        yield bench
    finally:
        bench.off()
        environment.cleanup()


def starts(shell, action, script):
    """Let a board run a script at each boot, by an `action` of inittab; the network is the script's."""
    shell.run(f"mkdir -p /root/www; cat >/root/ends.sh <<'EOF'\n{script}EOF\nchmod +x /root/ends.sh", 60)
    shell.run(f"echo '::{action}:/root/ends.sh' >>/etc/inittab", 60)
    reply = shell.run("sed -i /^udhcpc/d /etc/init.d/rcS; sync; ls /root", 60)
    assert "ends.sh" in reply.text


def board_file(bench, variant, folder):
    """Write the variant's board file with that bench's ports into a folder."""
    file, ports = folder / f"{variant}.yaml", bench.record
    envfile.write(envfile.source(variant), file, serial_port=ports.serial_port, power_port=ports.power_port)
    return file


def disks(bench):
    """The SHA-256 of what is on each disk, but for that of the firmware, which the boot ROM writes."""
    files = (bench.folder / "disks").glob("*.img")
    return {file.stem: sha256(file) for file in files if file.stem != "firmware"}
