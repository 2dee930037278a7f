"""Does `evmperf why` name faults made on purpose on a virtual EVM, and nothing that is harmless?

One boot; each fault is made, a case is measured with it, and it is taken back. The reference is a
healthy run of the same cases. Two more (`--healthy`), before the faults and after them, must have no
cause at all, and neither may `--bystanders`, changes that cannot touch the figure.

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
from typing import Literal
from unittest import mock

import msgspec

from evmperf.benchmarks import catalogue
from evmperf.benchmarks.families import disk
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

CASES = {
    "emmc": ("emmc_raw_fio_1g", "4k"),
    "ext4": ("emmc_ext4_fio_1g", "1m"),
    "sd": ("mmcsd_raw_fio_1g", "4k"),
    "nvme": ("pcie_nvme_ext4_fio_10g", "4k"),
    "usb": ("usbhost_msc_raw_fio", "4k"),
    "wire": ("eth_icssg_tcp_bidir", ""),
    "openssl": ("openssl_throughput", "aes-128-cbc|16384"),
}
_SIZES = ("1m", "4k")
"""Of a table's one execution, in its order: those of the cases above, as all take twice as long."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A fault, the shell text that makes and ends it (`qemu`: what QEMU is told instead), the name of the
    case in which it is looked for, and the rules that are right, none of a bystander. Cases of `before`
    are measured first.
    """

    name: str
    case: str
    rules: tuple[str, ...] = ()
    make: str = ""
    end: str = ""
    where: Literal["board", "tester", "qemu", "boot", "host", "login"] = "board"
    before: tuple[str, ...] = ()


class Bystander(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A harmless change: files of the board and their values, or shell text as that of a fault."""

    case: str
    set: dict[str, str | int] = {}
    make: str = ""
    end: str = ""
    where: Literal["board", "login"] = "board"

    @property
    def fault(self) -> Fault:
        """The same as a fault for which no rule is right."""
        files = list(enumerate(self.set))
        made = [f"cat {file} >/tmp/by{n} && echo {self.set[file]} >{file}" for n, file in files]
        make = " && ".join(made) or self.make
        end = " && ".join(f"cat /tmp/by{n} >{file}" for n, file in files) or self.end
        name = f"{self.case} beside {', '.join(self.set) or self.make}"
        return Fault(name, self.case, (), make, end, self.where)


_FAULTS, _BYSTANDERS = (Path(__file__).with_name(name) for name in ("faults.yaml", "bystanders.yaml"))
FAULTS = msgspec.yaml.decode(_FAULTS.read_bytes(), type=tuple[Fault, ...], strict=False)
BYSTANDERS = tuple(
    one.fault
    for one in msgspec.yaml.decode(_BYSTANDERS.read_bytes(), type=tuple[Bystander, ...], strict=False)
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
        if self.fault and self.fault.rules and not any(named):
            named = [answer.read[:1] for answer in self.answers]
        return next((cause.rule for causes in named for cause in causes), "")

    @property
    def is_right(self) -> bool:
        """Whether it is the cause that there is."""
        # A healthy board on a busy host has that as its cause, or none.
        return self.first in ((self.fault and self.fault.rules) or ("", "host"))


class Board:
    """A virtual EVM whose faults are made; `qmp` is its QEMU's control socket."""

    def __init__(self, bench: LabgridBench, qmp: Path, folder: Path) -> None:
        self.bench = bench
        self._qmp = qmp
        self._folder = folder
        self._hogs: list[subprocess.Popen[bytes]] = []

    def measure(self, name: str, *cases: str) -> Path:
        """Measure cases into a run of their own; its folder."""
        spool = Spool(
            self._folder, Run(id=name, board="virtual-evm", profile="quick", facts=Facts(virtual=True))
        )
        tools = ("fio", "mpstat", "netperf", "mkfs.ext4", "openssl")
        runner = Runner(self.bench, spool, "quick", tools, looks=True)
        for benchmark, label in map(CASES.__getitem__, cases):
            table = catalogue.benchmarks()[benchmark]
            runner.measure(table, next(c for c in table.cases("quick") if label in ("", c.label)))
        runner.close(brief=True)
        spool.release()
        return spool.folder

    def measure_with(self, fault: Fault) -> Path:
        """Measure the case of a fault with it; the run's folder."""
        self._do(fault, fault.make)
        try:
            return self.measure(f"fault-{(FAULTS + BYSTANDERS).index(fault)}", *fault.before, fault.case)
        finally:
            self._do(fault, fault.end)

    def _do(self, fault: Fault, text: str) -> None:
        if fault.where == "qemu":
            self._throttle(**json.loads(text))
            return
        if fault.where == "login":
            driver = self.bench._strategy.shell
            driver.console.sendline(text)
            driver.console.expect(driver.prompt, timeout=10)
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
    with (
        virtualbench.running("virtual", "why", qemu_options=options) as lab,
        virtualbench.reached(virtualbench.board_file(lab, "virtual", folder)) as bench,
    ):
        yield Board(bench, qmp, folder)


def run(folder: Path, faults: tuple[Fault, ...] = FAULTS, healthy_runs: int = 2) -> Iterator[Found]:
    """A healthy board, each fault, and the board as the faults have left it; so many healthy runs in all."""
    with mock.patch.object(disk, "_IN_ORDER", _SIZES), board(folder) as there:
        cases = tuple(dict.fromkeys(fault.case for fault in faults))
        healthy = there.measure("healthy", *cases)
        for number in range(1, healthy_runs):
            yield _asked(None, there.measure(f"healthy-{number}", *cases), healthy)
        for fault in faults:
            yield _asked(fault, there.measure_with(fault), healthy)
        yield _asked(None, there.measure("healthy-after", *cases), healthy)


def _asked(fault: Fault | None, folder: Path, healthy: Path) -> Found:
    """What `why` says of the cases of a run."""
    case = CASES[fault.case][0] if fault else "_"
    return Found(fault, why.explain(folder, case, str(healthy)).answers)


def main(words: Sequence[str] | None = None) -> None:
    """Print a line a fault."""
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--bystanders", action="store_true", help="harmless changes in place of faults")
    parser.add_argument("--healthy", type=int, default=2, metavar="N", help="healthy runs (default: 2)")
    command.add_names(parser, [fault.name for fault in FAULTS + BYSTANDERS])
    given = parser.parse_args(words)
    faults = {fault.name: fault for fault in (BYSTANDERS if given.bystanders else FAULTS)}
    chosen = tuple(map(faults.__getitem__, command.named(parser, given.names, faults)))
    right, pairs, blamed = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        for found in run(Path(folder), chosen, given.healthy):
            right += found.is_right and found.fault is not None
            if not found.fault:
                pairs += len(found.answers)
                named = [c.rule for answer in found.answers if answer.is_worse for c in answer.causes[:1]]
                blamed += sum(rule != "host" for rule in named)
            name = found.fault.name if found.fault else "none (a healthy board)"
            causes = [c for answer in found.answers for c in (*answer.causes, *answer.read)][:4]
            said = "; ".join(cause.reason for cause in causes) or "no cause"
            figures = ", ".join(answer.headline for answer in found.answers)
            print("right" if found.is_right else "WRONG", name, figures, said, sep="  ", flush=True)
    print(f"{right} of {len(chosen)} {'blamed nothing' if given.bystanders else 'causes are named first'}")
    print(f"{blamed} of {pairs} figures of healthy pairs have a cause")


if __name__ == "__main__":
    main()
