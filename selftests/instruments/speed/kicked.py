"""How many sessions do one thing more to a board after it was taken from them, on a busy host."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from unittest import mock

from labgrid import Environment
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb

from evmperf.boards import board as board_files
from evmperf.lab.bench import LabgridBench
from evmperf.lab.keeping.claim import Claim
from evmperf.lab.keeping.places import Connection
from evmperf.lab.keeping.wanted import Holder, Wanted
from evmperf.model.errors import BoardLost
from selftests.instruments.speed.boards import burners
from selftests.instruments.speed.figures import ROOT, Row, load
from selftests.support.placelab import PlaceLab

_KICKS, _LOAD = 64, 13
_PAUSE_S = 0.02
"""The longest pause between two things that a session does, in seconds."""
_PLACE = "one"


class _Told(list[object]):
    """What was done to a board, with the time of each on the monotonic clock."""

    def __init__(self) -> None:
        super().__init__()
        self.at: list[float] = []

    def append(self, what: object) -> None:
        self.at.append(time.monotonic())
        super().append(what)


def leaks() -> list[Row]:
    """Kicks of sessions that type lines and switch the power all the time."""
    with tempfile.TemporaryDirectory(prefix="evmperf-speed-") as folder:
        lab = PlaceLab(Path(folder), {_PLACE: {}})
        try:
            with mock.patch.dict(os.environ, lab.environment):
                late, load_then = asyncio.run(_kick(lab))
        finally:
            lab.close()
    count = sum(bool(times) for times in late)
    after = [moment for times in late for moment in times]
    return [
        Row(
            f"kicks after which the board heard something, n {_KICKS}, load {load_then}",
            f"{count} kicks, {len(after)} things",
            "",
            f"the latest {max(after, default=0.0) * 1e3:.1f} ms after",
        )
    ]


async def _kick(lab: PlaceLab) -> tuple[list[list[float]], str]:
    board = lab.boards[_PLACE]
    typed, switched = _Told(), _Told()
    board.typed, board.switched = typed, switched
    words = [sys.executable, "-m", "selftests.instruments.speed.kicked", str(_board_file(lab)), lab.address]
    worker = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert worker.stdin
    assert worker.stdout
    bob = Connection(lab.address, Holder("here", "bob"), lambda *_: None, lambda *_: None)
    late: list[list[float]] = []
    try:
        await bob.open()
        with burners(max(0, _LOAD - round(os.getloadavg()[0]))):
            for _ in range(_KICKS):
                worker.stdin.write(b"\n")
                worker.stdin.flush()
                if await asyncio.to_thread(worker.stdout.readline) != b"held\n":
                    raise RuntimeError("the session does not hold its board")
                await asyncio.sleep(random.uniform(0.1, 0.5))
                await bob._session.stub.ReleasePlace(pb.ReleasePlaceRequest(placename=_PLACE))
                await bob.acquire(_PLACE)
                kicked = time.monotonic()
                await asyncio.to_thread(worker.stdout.readline)
                await asyncio.sleep(0.1)  # what is on its way arrives
                done = [*typed.at, *switched.at]
                late.append([moment - kicked for moment in done if moment > kicked])
                await bob.release(_PLACE)
            load_then = load().split()[0]
    finally:
        await bob.close()
        worker.kill()
        worker.wait()
    return late, load_then


def _board_file(lab: PlaceLab) -> Path:
    """A file with the board's wires, as the place has them: Labgrid is not asked for them anew."""
    file = lab.board_file(lab.folder / "wires.yaml")
    port, switch = lab.boards[_PLACE].port, lab.switches[_PLACE].port
    wires = (
        f"      NetworkSerialPort: {{host: 127.0.0.1, port: {port}, protocol: raw}}\n"
        f"      NetworkPowerPort: {{model: rest, index: '0',\n"
        f"        host: 'http://127.0.0.1:{switch}/power/{{index}}'}}\n"
    )
    head, resources, tail = file.read_text().partition("    resources:\n")
    file.write_text(head + resources + wires + tail.partition("$LG_PLACE\n")[2])
    return file


def _work(file: str, address: str) -> None:
    """Be a session that does something all the time until it is kicked, each time it is told to."""
    environment = Environment(file)
    target = environment.get_target()
    claim: Claim | None = None

    def check() -> None:
        assert claim
        claim.check()

    bench = LabgridBench(target, board_files.load(Path(file)), check=check)
    strategy = bench._strategy
    for number in itertools.count():
        if not sys.stdin.readline():
            return
        claim = Claim.take(Wanted(_PLACE, address), f"run-{number}", wait_s=60)
        strategy.console._forbidden = None
        claim.on_lost = bench.lose
        target.activate(strategy.console)
        print("held", flush=True)
        with contextlib.suppress(BoardLost):
            while True:
                strategy._switch("off")
                for _ in range(3):
                    strategy.console.sendline("something")
                    time.sleep(random.uniform(0, _PAUSE_S))
        print("lost", flush=True)
        claim.release()


if __name__ == "__main__":
    _work(*sys.argv[1:])
