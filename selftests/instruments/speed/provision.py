"""A release put on a virtual EVM with a card switch: the whole against the sum of its parts, and
the same image again against the first time.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from evmperf_virtual import envfile, release
from evmperf_virtual.client import LabClient
from labgrid import Environment

from evmperf.benchmarks import catalogue
from evmperf.lab.bench import LabgridBench
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision import running, scratch
from evmperf.lab.provision.cache import Cache
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.installation import Installation
from evmperf.lab.provision.ways import CardWay
from selftests.instruments.speed.figures import Row, ratio

_VARIANT = "virtual-sd"
_ROUNDS = 3


def install() -> list[Row]:
    """Seconds of a whole installation, of its parts one by one, and of the same image again."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["EVMPERF_STATE"] = str(folder / "state")
        lab = LabClient("speed")
        lab.start(_VARIANT, serial_port=0, power_port=0)
        try:
            return _Measure(folder, lab).rows()
        finally:
            lab.stop()


class _Measure:
    def __init__(self, folder: Path, lab: LabClient) -> None:
        file, ports = folder / "sd.yaml", lab.record
        envfile.write(
            envfile.source(_VARIANT), file, serial_port=ports.serial_port, power_port=ports.power_port
        )
        self._environment = Environment(str(file))
        target = self._environment.get_target("main")
        self._board = catalogue.board(file)
        self._bench = LabgridBench(target, self._board)
        self._work = Installation(target, self._board, self._bench)
        switch = CardSwitch.of(target)
        assert switch
        self._way = CardWay(switch)
        self._images = [self._release(folder, number) for number in (1, 2)]

    def _release(self, folder: Path, number: int) -> DiskImage:
        file = folder / f"{release.name(_VARIANT, number)}.wic.zst"
        release.build(_VARIANT, number, file, lambda _line: None)
        return Cache().get(str(file))

    def rows(self) -> list[Row]:
        new, other = self._images
        whole, parts, again = [], [], []
        try:
            for _ in range(_ROUNDS):
                self._use(other)
                whole.append(_seconds(lambda: self._work.install(str(new.file), force=True)))
                again.append(_seconds(lambda: self._work.install(str(new.file))))
                self._use(other)
                parts.append(sum(map(_seconds, self._parts(new))))
        finally:
            self._environment.cleanup()
        return [
            ratio("image put, booted, identified / the sum of its parts", whole, parts, 1.05),
            ratio("the same image again / the first time", again, whole, 0.1),
        ]

    def _use(self, image: DiskImage) -> None:
        """Make the card one that holds another release, with the board off."""
        self._bench.off()
        self._way.put(image, lambda *_: None)

    def _parts(self, image: DiskImage) -> list[Callable[[], object]]:
        def identify() -> None:
            found = running.ask(self._bench.shell(), self._bench.console_lines())
            running.check(image.identity, found)

        return [
            lambda: self._way.put(image, lambda *_: None),
            self._boot,
            identify,
            lambda: scratch.removed(self._bench.shell(), self._board, "/dev/mmcblk1p2"),
        ]

    def _boot(self) -> None:
        self._bench.abandon()
        self._bench.shell()


def _seconds(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
