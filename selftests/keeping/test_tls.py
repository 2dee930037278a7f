"""A coordinator behind a TLS proxy, reached as Labgrid's next release does."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import threading

import pytest
import yaml

from evmperf.measure.runs import spool
from selftests.support import programs, web
from selftests.support.ports import free_port
from selftests.support.sessions import Pytest

pytestmark = pytest.mark.many_sessions

NEXT = '''
"""Labgrid's next release in a few lines: a secure channel where the board file's options say so."""
import grpc
from labgrid.remote import client
from labgrid.remote.generated import labgrid_coordinator_pb2_grpc as rpc
from labgrid.resource.remote import RemotePlaceManager

def start(manager):
    if manager.session:
        return
    config = manager.env.config
    certificate = open(config.resolve_path(config.get_option("coordinator_cacert")), "rb").read()

    class Session(client.ClientSession):
        def __attrs_post_init__(self):
            super().__attrs_post_init__()
            if config.get_option("coordinator_tls"):
                credentials = grpc.ssl_channel_credentials(certificate)
                self.channel = grpc.aio.secure_channel(self.address, credentials)
                self.stub = rpc.CoordinatorStub(self.channel)

    client.ClientSession = Session
    manager.session = client.start_session(manager.url, extra={"env": manager.env})
    manager.loop = manager.session.loop

RemotePlaceManager._start = start
'''


@pytest.fixture
def certificate(tmp_path):
    return web.certificate(tmp_path)


@pytest.fixture
def secure(lab, certificate):
    """The address of a TLS proxy before the lab's coordinator."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    context.set_alpn_protocols(["h2"])
    port, loop = free_port(), asyncio.new_event_loop()

    async def copy(reader, writer):
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async def serve(reader, writer):
        host, plain = lab.address.split(":")
        far_reader, far_writer = await asyncio.open_connection(host, int(plain))
        await asyncio.gather(copy(reader, far_writer), copy(far_reader, writer))

    server = loop.run_until_complete(asyncio.start_server(serve, "127.0.0.1", port, ssl=context))
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    yield f"localhost:{port}"
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_the_board_files_tls_options_reach_the_coordinator(lab, secure, certificate, tmp_path):
    (tmp_path / "next").mkdir()
    (tmp_path / "next" / "sitecustomize.py").write_text(NEXT)
    file = lab.board_file(tmp_path / "results.yaml")
    options = {"coordinator_tls": True, "coordinator_cacert": str(certificate[0])}
    file.write_text(f"{file.read_text()}\noptions: {yaml.safe_dump(options, default_flow_style=True)}")
    names = {"LG_PLACE": "one", "LG_COORDINATOR": secure, "PYTHONPATH": str(tmp_path / "next")}
    session = Pytest(file, tmp_path / "results", "default_rootfs", (), {**lab.environment, **names})
    try:
        assert session.wait() == 0, session.said
        assert spool.read_run(session.folder).place == "one"
        assert lab.holder("one") == ""
    finally:
        programs.end(session.process)
