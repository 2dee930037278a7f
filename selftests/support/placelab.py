"""A Labgrid lab on loopback: coordinator, exporter, and as many scripted boards as asked for."""

import asyncio
import contextlib
import getpass
import inspect
import io
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TypeVar

import yaml
from grpc import aio
from labgrid.remote import client as labgrid_client
from labgrid.remote.generated import labgrid_coordinator_pb2 as pb
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc as rpc

from evmperf.boards import board as boards
from evmperf.boards import yamlfile
from evmperf.measure.hostload import slowness
from selftests.support.boardfiles import console_and_power
from selftests.support.fakeboard import FakeBoard, FakeSwitch
from selftests.support.ports import free_port

T = TypeVar("T")
BIN = Path(sys.executable).parent
QUICK = {
    "K3BootStrategy": {
        "uboot_timeout": 20,
        "kernel_timeout": 20,
        "boot_timeout": 240,
        "retries": 0,
        "media": {"virtio": ["setenv mmcdev 1", "setenv bootpart 1:2"]},
    },
    "EvmShellDriver": {"login_timeout": 5, "await_login_timeout": 2},
    "StampedSerialDriver": {"timeout": 5.0, "reconnect": 5.0},
}


def until(holds, seconds=120.0):
    """Wait for something, on a loaded host as many times longer; how long it took, in seconds."""
    began = time.monotonic()
    while not holds():
        assert time.monotonic() - began < seconds * slowness(), "it did not come"
        time.sleep(0.005)
    return time.monotonic() - began


class Visitor(labgrid_client.ClientSession):
    """Labgrid's client of any user. A coordinator knows clients by their connections, and gRPC shares one
    between the sessions of a process: this one has its own.
    """

    host = user = ""

    def __attrs_post_init__(self):
        super().__attrs_post_init__()
        options = [("grpc.use_local_subchannel_pool", 1)]
        self.channel = aio.insecure_channel(self.address, options=options)
        self.stub = rpc.CoordinatorStub(self.channel)

    def gethostname(self):
        return self.host

    def getuser(self):
        return self.user


class PlaceLab:
    """`boards` and `switches` by place; the environment for whoever works in this lab."""

    def __init__(self, folder, places):
        self.folder = folder
        self.places = places
        self.address = f"127.0.0.1:{free_port()}"
        self.boards = {name: FakeBoard() for name in places}
        for board in self.boards.values():
            board.pace_s = 0.05
        self.switches = {name: FakeSwitch(board) for name, board in self.boards.items()}
        self.environment = {
            **os.environ,
            "LG_COORDINATOR": self.address,
            "EVMPERF_LOCKS": str(folder),
            "EVMPERF_STATE": str(folder / "state"),
            "PYTHONUNBUFFERED": "1",
        }
        self.servers: dict[str, subprocess.Popen[bytes]] = {}
        (folder / "exporter.yaml").write_text(
            yaml.safe_dump({name: self._resources(name) for name in places})
        )
        self.start_coordinator()
        self._talk("me", self._create)
        self.start_exporter()

    def _resources(self, name):
        return console_and_power(self.boards[name].port, self.switches[name].port, 1_500_000)

    def start_coordinator(self):
        self._start("coordinator", "--listen", self.address)
        host, port = self.address.split(":")

        def answers():
            with socket.socket() as probe:
                return probe.connect_ex((host, int(port))) == 0

        until(answers)

    def start_exporter(self):
        export = ["--coordinator", self.address, "--name", "lab", "--hostname", "127.0.0.1"]
        self._start("exporter", *export, "exporter.yaml")
        wanted = 2 * len(self.boards)
        until(lambda: self.client("", "resources").count("lab/") == wanted)

    def restart(self):
        """Start coordinator and exporter anew, as a host's service manager does.

        Labgrid's coordinator saves its places every 15 s: those younger than that are made again.
        """
        for server in list(self.servers):
            self.end(server)
        self.start_coordinator()
        self._talk("me", self._create)
        self.start_exporter()

    def end(self, server):
        """Kill coordinator or exporter."""
        self.servers[server].kill()
        self.servers.pop(server).wait()

    def client(self, place, *arguments, user=""):
        """Run Labgrid's own client, as `user` if given; what it prints.

        It runs in this process: one of its own needs a second to start, and a test asks often.
        """
        words = [*(["-p", place] if place else []), *arguments]
        given = labgrid_client.get_parser().parse_args(words)

        async def run(session):
            session.args, session.prog = given, "labgrid-client"
            done = given.func(session)
            if inspect.isawaitable(done):
                await done

        with contextlib.redirect_stdout(io.StringIO()) as said:
            self._talk(user or self.environment.get("LG_USERNAME", getpass.getuser()), run)
        return said.getvalue()

    def holder(self, place):
        """Who holds a place, as the coordinator says; "" for nobody."""

        async def look(session):
            return session.get_place(place).acquired or ""

        return self._talk("me", look)

    async def _create(self, session):
        """Make the places that the coordinator does not know."""
        stub = session.stub
        for name, tags in self.places.items():
            if name in session.places:
                continue
            await stub.AddPlace(pb.AddPlaceRequest(name=name))
            pattern = f"lab/{name}/*"
            await stub.AddPlaceMatch(pb.AddPlaceMatchRequest(placename=name, pattern=pattern))
            await stub.SetPlaceTags(pb.SetPlaceTagsRequest(placename=name, tags=tags))

    def _talk(self, user, what):
        """Do something with the coordinator as a user of that name."""

        async def talk():
            session = Visitor(self.address, asyncio.get_running_loop())
            session.host, session.user = self.environment.get("LG_HOSTNAME", socket.gethostname()), user
            await session.start()
            try:
                return await what(session)
            finally:
                session.stopping.set()
                await session.stop()
                await session.close()

        return asyncio.run(talk())

    def kick(self, place, user):
        """Take a place away from its holder, in one go, as a colleague of that name would.

        Returns when it was asked for, on the monotonic clock.
        """

        async def take(session):
            asked = time.monotonic()
            await session.stub.ReleasePlace(pb.ReleasePlaceRequest(placename=place))
            await session.stub.AcquirePlace(pb.AcquirePlaceRequest(placename=place))
            return asked

        return self._talk(user, take)

    def board_file(self, path, features=None, **options):
        """A board file for any place of this lab, named by $LG_PLACE."""
        data = yamlfile.read(boards.ENV_DIR / "virtual.yaml")
        main = data["targets"]["main"]
        main["features"] = features or ["boot"]
        main["options"] = {
            "board": {
                "name": "scripted-evm",
                "title": "Scripted",
                "profile": "quick",
                "description": "A board made of threads",
            },
            "boot": {"medium": "virtio"},
            **options,
        }
        main["drivers"].pop("ScpiMeterDriver", None)  # these boards have no meter
        main["resources"] = {"RemotePlace": {"name": "@PLACE@"}}
        for name, arguments in QUICK.items():
            main["drivers"][name].update(arguments)
        text = yaml.safe_dump(data, sort_keys=False)
        path.write_text(text.replace("name: '@PLACE@'", "name: !template $LG_PLACE"))
        return path

    def _start(self, name, *arguments):
        with (self.folder / f"{name}.log").open("ab") as log:
            self.servers[name] = subprocess.Popen(
                [BIN / f"labgrid-{name}", *arguments], cwd=self.folder, stdout=log, stderr=log
            )

    def close(self):
        for server in list(self.servers):
            self.end(server)
        for switch in self.switches.values():
            switch.close()
        for board in self.boards.values():
            board.close()
