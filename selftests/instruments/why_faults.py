"""Does `evmperf why` name faults made on purpose on a virtual EVM?

One boot; each fault is made, a case is measured with it, and it is taken back. The reference is a
healthy run of the same cases. Two more, before the faults and after them, must have no cause at all.

Not made, because QEMU's board has nothing to make it with: a governor or clock limit (no cpufreq), a
PCIe link of other width or speed (it shows none), thermal throttling (no zones), CRC errors of a card.
The SD card's slower mode is its host's clock: QEMU's card says so and is as fast as before.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

from labgrid import Environment

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import disk
from evmperf.boards import board as boards
from evmperf.commands.app import why
from evmperf.explain.answers import Answer
from evmperf.lab.bench import LabgridBench
from evmperf.measure.bench import Shell
from evmperf.measure.runner import Runner
from evmperf.measure.runs.spool import Spool
from evmperf.model.facts import Facts
from evmperf.model.run import Run
from selftests.instruments import command
from selftests.support import virtualbench

EXT4 = ("emmc_ext4_fio_1g", "1m")
EMMC, SD = ("emmc_raw_fio_1g", "4k"), ("mmcsd_raw_fio_1g", "4k")
NVME, WIRE = ("pcie_nvme_ext4_fio_10g", "4k"), ("eth_icssg_tcp_bidir", "")
_SIZES = ("1m", "4k")
"""Of a table's one execution, in its order: those of the cases above, as all take twice as long."""
_QUEUE = "/sys/block/mmcblk0/queue"
_HOG = "(while :; do :; done) >/dev/null 2>&1 & echo $! >/tmp/fault"
_READER = (
    "(while :; do dd if=/dev/mmcblk0 of=/dev/null bs=16k count=2000 iflag=direct; done) >/dev/null 2>&1 & "
    "echo $! >/tmp/fault"
)
_END = "kill $(cat /tmp/fault); sleep 0.2"
_GROUP = (
    "mkdir -p /sys/fs/cgroup; g=/sys/fs/cgroup; mountpoint -q $g || mount -t cgroup2 none $g; "
    "echo '+cpu +io' >$g/cgroup.subtree_control; mkdir -p $g/fault; "
    "echo $PPID >$g/fault/cgroup.procs; g=$g/fault"
)
_UNGROUP = "g=/sys/fs/cgroup; for p in $PPID $$; do echo $p >$g/cgroup.procs; done; rmdir $g/fault"
_TRACE = "t=/sys/kernel/tracing; [ -e $t/current_tracer ] || mount -t tracefs none $t"


def _debug(flag: str) -> str:
    """Shell text that turns the debug messages of the MMC driver on or off."""
    there = "d=/sys/kernel/debug; mount -t debugfs none $d"
    return f"{there}; echo 'file drivers/mmc/* {flag}' >$d/dynamic_debug/control; umount $d"


@dataclass(frozen=True)
class Fault:
    """A fault, the shell text that makes and ends it (`qmp`: what QEMU is told instead), the case in
    which it is looked for, and the rules that are right.
    """

    name: str
    make: str
    end: str
    case: tuple[str, str]
    rules: tuple[str, ...]
    where: str = "board"
    before: tuple[tuple[str, str], ...] = ()
    """Cases that are measured with it first."""


def _set(name: str, file: str, value: str, rule: str, case: tuple[str, str] = EMMC) -> Fault:
    """A wrong value in a file of the kernel's, which is put back: of a choice, the one in brackets."""
    keep = f"sed 's/.*\\[\\(.*\\)\\].*/\\1/' {file} >/tmp/fault"
    return Fault(name, f"{keep}; echo {value} >{file}", f"cat /tmp/fault >{file}", case, (rule,))


FAULTS = (
    Fault("a CPU hog beside", _HOG, _END, EMMC, ("beside",)),
    Fault("another process reads the disk", _READER, _END, EMMC, ("shared disk", "beside")),
    Fault(
        "a CPU is off",
        "echo 0 >/sys/devices/system/cpu/cpu1/online",
        "echo 1 >/sys/devices/system/cpu/cpu1/online",
        EMMC,
        ("offline",),
    ),
    _set("another I/O scheduler", f"{_QUEUE}/scheduler", "none", "queue.scheduler"),
    _set("read-ahead off", f"{_QUEUE}/read_ahead_kb", "0", "read-ahead"),
    _set("small requests", f"{_QUEUE}/max_sectors_kb", "4", "queue.max_sectors_kb"),
    Fault(
        "a full write cache",
        "cd /proc/sys/vm; for f in dirty_background_ratio dirty_ratio dirty_expire_centisecs; do "
        "cat $f >/tmp/$f; done; echo 90 >dirty_ratio; echo 90 >dirty_background_ratio; "
        "echo 60000 >dirty_expire_centisecs; cd /; "
        # The root is nearly full, where ext4 writes at once; a disk's last close writes, too.
        "(dd if=/dev/zero bs=1M count=120 seek=200; exec sleep 600) 1<>/dev/nvme0n1 2>/dev/null </dev/null & "
        "echo $! >/tmp/fault; until grep -qE 'Dirty: *1[0-9]{5} ' /proc/meminfo; do sleep 0.2; done",
        "kill $(cat /tmp/fault); cd /proc/sys/vm; "
        "for f in dirty_background_ratio dirty_ratio dirty_expire_centisecs; "
        "do cat /tmp/$f >$f; done; cd /; sync",
        EMMC,
        ("dirty",),
    ),
    Fault(
        "little memory",
        "mkdir /tmp/full; mount -t tmpfs -o size=95% none /tmp/full; "
        "n=$(awk '/MemAvail/ { print int($2 / 1024) - 70 }' /proc/meminfo); "
        "dd if=/dev/zero of=/tmp/full/x bs=1M count=$n 2>/dev/null",
        "umount /tmp/full; rmdir /tmp/full",
        EMMC,
        ("memory",),
    ),
    Fault(
        "a slow NVMe disk",
        json.dumps({"bps": 0, "iops": 60}),
        json.dumps({"bps": 0, "iops": 0}),
        NVME,
        ("device",),
        "qemu",
    ),
    Fault(
        "an SD card's slower clock",
        "d=/sys/kernel/debug; mount -t debugfs none $d; cat $d/mmc1/clock >/tmp/clock; "
        "echo 25000000 >$d/mmc1/clock; umount $d",
        "d=/sys/kernel/debug; mount -t debugfs none $d; cat /tmp/clock >$d/mmc1/clock; umount $d",
        SD,
        ("mmc.ios.clock", "mmc.ios.actual_clock"),
    ),
    Fault(
        "a board's clock that is 10 % fast",
        "busybox adjtimex -q -t 11000",
        "busybox adjtimex -q -t 10000",
        SD,
        ("clock",),
        before=(EMMC,),
    ),
    Fault(
        "the tester's link at 100 Mbit/s",
        "tc qdisc replace dev {nic} root tbf rate 100mbit burst 64kb latency 20ms",
        "tc qdisc del dev {nic} root",
        WIRE,
        ("shaped",),
        "tester",
    ),
    Fault(
        "a cable that loses packets",
        "tc qdisc add dev eth1 root netem loss 3%",
        "tc qdisc del dev eth1 root",
        WIRE,
        ("loss", "shaped"),
    ),
    Fault(
        "interrupt pacing off",
        "ethtool -c eth1 | awk '/^rx-usecs:/ { print $2 }' >/tmp/fault; ethtool -C eth1 rx-usecs 0",
        "ethtool -C eth1 rx-usecs $(cat /tmp/fault)",
        WIRE,
        ("pacing", "ethtool-c.rx-usecs"),
    ),
    Fault(
        "offloads off",
        # A group that is on puts all its parts on, unless they are named, too.
        'ethtool -k eth1 | awk \'/segmentation/ && NF == 2 { sub(":", ""); print }\' >/tmp/fault; '
        "ethtool -K eth1 tso off gso off",
        "ethtool -K eth1 $(cat /tmp/fault)",
        WIRE,
        ("ethtool-k.tcp-segmentation-offload", "ethtool-k.generic-segmentation-offload"),
    ),
    _set("small socket buffers", "/proc/sys/net/ipv4/tcp_wmem", "4096 8192 8192", "tcp_wmem", WIRE),
    Fault(
        "a control group's CPU quota",
        f"{_GROUP}; echo '20000 100000' >$g/cpu.max",
        _UNGROUP,
        EMMC,
        ("quota",),
    ),
    Fault("a shell on one CPU", "taskset -p 2 $PPID", "taskset -p 3 $PPID", EMMC, ("pinned",)),
    Fault(
        "jobs that begin and end",
        "(while :; do for n in 1 2 3; do (i=0; while [ $i -lt 3000 ]; do i=$((i + 1)); done) & done; "
        "wait; done) >/dev/null 2>&1 & echo $! >/tmp/fault",
        _END,
        EMMC,
        ("beside",),
    ),
    Fault(
        "three scripts that poll",
        "for n in 1 2 3; do (while :; do cat /proc/meminfo /proc/stat; done) >/dev/null 2>&1 & echo $!; done "
        ">/tmp/fault",
        _END,
        EMMC,
        ("beside",),
    ),
    Fault(
        "a journal of all data",
        "cd /etc; [ ! -e mke2fs.conf ] || cp mke2fs.conf /tmp/fault; echo '[defaults]' >>mke2fs.conf; "
        "sed -i '/default_mntopts/d; s/^.defaults.*/&\\n default_mntopts = journal_data/' mke2fs.conf",
        "rm /etc/mke2fs.conf; [ ! -e /tmp/fault ] || cp /tmp/fault /etc/mke2fs.conf",
        EXT4,
        ("journal", "mounted"),
    ),
    Fault("the MMC driver's debug messages", _debug("+p"), _debug("-p"), EMMC, ("kernel log",)),
    Fault(
        "a small write cache",
        "cat /proc/sys/vm/dirty_ratio >/tmp/fault; echo 16384 >/proc/sys/vm/dirty_bytes",
        "cat /tmp/fault >/proc/sys/vm/dirty_ratio",
        EXT4,
        ("write cache", "sysctl.vm.dirty_bytes"),
    ),
    Fault(
        "a control group's limit of I/O",
        f'{_GROUP}; echo "$(cat /sys/block/mmcblk0/dev) rbps=2000000 wbps=2000000" >$g/io.max',
        _UNGROUP,
        EMMC,
        ("group.io.max",),
    ),
    Fault(
        "the kernel's function tracer",
        f"{_TRACE}; echo function >$t/current_tracer",
        f"{_TRACE}; echo nop >$t/current_tracer; umount $t",
        EMMC,
        ("tracer",),
    ),
    Fault(
        "packets on the other port",
        "ip link set eth0 up; "
        "(while :; do busybox ping -q -c 1000 -i 0.0001 -w 3 10.0.2.2; done) >/dev/null 2>&1 & "
        "echo $! >/tmp/fault",
        _END,
        EMMC,
        ("packets", "beside"),
    ),
    Fault(
        "the tester's small socket buffers",
        "cat /proc/sys/net/ipv4/tcp_rmem >/tmp/fault-rmem; echo 4096 4096 4096 >/proc/sys/net/ipv4/tcp_rmem",
        "cat /tmp/fault-rmem >/proc/sys/net/ipv4/tcp_rmem",
        WIRE,
        ("tester.tcp_rmem",),
        "tester",
    ),
    Fault(
        "many filters",
        "tc qdisc add dev eth1 clsact; for n in $(seq 2000); do echo filter add dev eth1 egress prio $n u32 "
        "match ip dport $n 0xffff action pass; done | tc -b -",
        "tc qdisc del dev eth1 clsact",
        WIRE,
        ("filters", "tc_filters"),
    ),
    Fault("a small MTU", "ip link set eth1 mtu 600", "ip link set eth1 mtu 1500", WIRE, ("net.mtu",)),
    Fault(
        "a rate of the queue",
        "tc qdisc replace dev eth1 root fq maxrate 30mbit",
        "tc qdisc del dev eth1 root",
        WIRE,
        ("tc", "shaped"),
    ),
    Fault("a busy host", "", "", EMMC, ("host",), "host"),
    Fault("arguments of the kernel", "maxcpus=1", "", EMMC, ("argument +maxcpus=1", "offline"), "boot"),
)


@dataclass(frozen=True)
class Found:
    """What `why` said of a case with a fault (None: of a healthy board)."""

    fault: Fault | None
    answers: tuple[Answer, ...]

    @property
    def first(self) -> str:
        """The rule of the first cause, "" where there is none; of a fault without harm, what was read."""
        named = [answer.causes[:1] for answer in self.answers if answer.is_worse]
        # A figure may be worse by its noise alone, without a cause, where the fault does no harm.
        if self.fault and not any(named):
            named = [answer.read[:1] for answer in self.answers]
        return next((cause.rule for causes in named for cause in causes), "")

    @property
    def is_right(self) -> bool:
        """Whether it is the cause that there is."""
        # A healthy board on a busy host has that as its cause, or none.
        return self.first in (self.fault.rules if self.fault else ("", "host"))


class Board:
    """A virtual EVM whose faults are made; `qmp` is its QEMU's control socket."""

    def __init__(self, bench: LabgridBench, qmp: Path, folder: Path) -> None:
        self.bench = bench
        self._qmp = qmp
        self._folder = folder
        self._hogs: list[subprocess.Popen[bytes]] = []

    def measure(self, name: str, *cases: tuple[str, str]) -> Path:
        """Measure cases into a run of their own; its folder."""
        spool = Spool(
            self._folder, Run(id=name, board="virtual-evm", profile="quick", facts=Facts(virtual=True))
        )
        tools = ("fio", "mpstat", "netperf", "mkfs.ext4")
        runner = Runner(self.bench, spool, "quick", tools, looks=True)
        for benchmark, label in cases:
            table = catalogue.benchmarks()[benchmark]
            runner.measure(table, next(c for c in table.cases("quick") if label in ("", c.label)))
        runner.close(brief=True)
        spool.release()
        return spool.folder

    def try_fault(self, fault: Fault, healthy: Path) -> Found:
        """Make a fault, measure with it, take it back, and ask why."""
        return self.ask(fault, self.with_fault(fault, f"fault-{FAULTS.index(fault)}"), healthy)

    def with_fault(self, fault: Fault, name: str) -> Path:
        """Measure the case of a fault with it; the run's folder."""
        self._do(fault, fault.make)
        try:
            return self.measure(name, *fault.before, fault.case)
        finally:
            self._do(fault, fault.end)

    def ask(self, fault: Fault | None, folder: Path, healthy: Path) -> Found:
        """What `why` says of the cases of a run."""
        case = fault.case[0] if fault else "_"
        return Found(fault, why.explain(folder, case, str(healthy)).answers)

    def _do(self, fault: Fault, text: str) -> None:
        if fault.where == "qemu":
            self._throttle(**json.loads(text))
            return
        if fault.where == "boot":
            # As a session with --vary has them: its next shell boots with them.
            self.bench._arguments = self.bench._strategy.kernel_arguments = text
            return
        if fault.where == "host":
            for hog in self._hogs:
                hog.kill()
                hog.wait()
            hogs = 0 if self._hogs else 4 * (os.cpu_count() or 1)
            self._hogs = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(hogs)]
            return
        shell: Shell = self.bench.tester() if fault.where == "tester" else self.bench.shell()
        if fault.where == "tester":
            nics = shell.run("ip -o addr | awk '$4 ~ /^192.168.101.1\\// { print $2 }'", 10).text.split()
            text = text.format(nic=nics[0])
        reply = shell.run(text, 120)
        assert reply.status == 0, f"{fault.name}: {reply.text}"

    def _throttle(self, bps: int, iops: int) -> None:
        limits = {f"{what}{way}": 0 for what in ("bps", "iops") for way in ("_rd", "_wr")}
        command: dict[str, object] = {"device": "nvme", "bps": bps, "iops": iops, **limits}
        with socket.socket(socket.AF_UNIX) as line:
            line.connect(str(self._qmp))
            talk = line.makefile("rw")
            talk.readline()
            calls: dict[str, dict[str, object]] = {"qmp_capabilities": {}, "block_set_io_throttle": command}
            for name, arguments in calls.items():
                talk.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
                talk.flush()
                while "return" not in (said := json.loads(talk.readline())):
                    assert "error" not in said, said


@contextmanager
def board(folder: Path) -> Iterator[Board]:
    """A virtual EVM of its own."""
    qmp = folder / "qmp"
    options = ("-qmp", f"unix:{qmp},server=on,wait=off")
    with virtualbench.running("virtual", "why", qemu_options=options) as lab:
        file = virtualbench.board_file(lab, "virtual", folder)
        environment = Environment(str(file))
        bench = LabgridBench(environment.get_target(), boards.load(file))
        try:
            yield Board(bench, qmp, folder)
        finally:
            bench.off()
            environment.cleanup()


def run(folder: Path, faults: tuple[Fault, ...] = FAULTS) -> Iterator[Found]:
    """A healthy board, each fault, and the board as the faults have left it."""
    with mock.patch.object(disk, "_IN_ORDER", _SIZES), board(folder) as there:
        cases = tuple(dict.fromkeys(fault.case for fault in faults))
        healthy = there.measure("healthy", *cases)
        yield there.ask(None, there.measure("healthy-again", *cases), healthy)
        for fault in faults:
            yield there.try_fault(fault, healthy)
        yield there.ask(None, there.measure("healthy-after", *cases), healthy)


def main(words: Sequence[str] | None = None) -> None:
    """Print a line a fault."""
    parser = command.parser(__spec__.name, __doc__)
    faults = {fault.name: fault for fault in FAULTS}
    command.add_names(parser, faults)
    named = command.named(parser, parser.parse_args(words).names, faults)
    right, chosen = 0, tuple(map(faults.__getitem__, named))
    with tempfile.TemporaryDirectory() as folder:
        for found in run(Path(folder), chosen):
            right += found.is_right and found.fault is not None
            name = found.fault.name if found.fault else "none (a healthy board)"
            causes = [c for answer in found.answers for c in (*answer.causes, *answer.read)][:4]
            said = "; ".join(cause.reason for cause in causes) or "no cause"
            print("right" if found.is_right else "WRONG", f"{name}: {said}", sep="  ", flush=True)
    print(f"{right} of {len(chosen)} causes are named first")


if __name__ == "__main__":
    main()
