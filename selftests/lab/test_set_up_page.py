"""docs/lab-set-up.md: its commands, on a real coordinator and exporter."""

import os
import re
import subprocess

from selftests.support import programs
from selftests.support.placelab import BIN, until
from selftests.support.ports import free_port


def blocks():
    """The indented blocks of the page's beginning, as one would copy them."""
    page = (programs.REPOSITORY / "docs" / "lab-set-up.md").read_text().partition("## The tester")[0]
    found = re.findall(r"(?:^ {4}.*\n|^\n(?= {4}))+", page, re.MULTILINE)
    return [re.sub(r"^ {4}", "", block, flags=re.MULTILINE).strip("\n") for block in found]


def test_the_pages_commands_make_a_place_with_its_devices(tmp_path):
    servers, exporter, client = (
        next(block for block in blocks() if word in block)
        for word in ("labgrid-coordinator", "NetworkPowerPort", "labgrid-client")
    )
    port = str(free_port())
    (tmp_path / "exporter.yaml").write_text(exporter)
    environment = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}

    def run(text):
        text = text.replace("20408", port)
        return programs.run("bash", "-ec", text, cwd=tmp_path, environment=environment)

    # The page starts both in the background of one shell; here each is a process to be ended.
    running = []
    try:
        for line in servers.splitlines():
            if line.startswith("sleep"):
                until(lambda: run("labgrid-client -x 127.0.0.1:20408 resources").returncode == 0, 60)
                continue
            command = line.removesuffix("&").replace("20408", port).split()
            running.append(
                subprocess.Popen(
                    command,
                    cwd=tmp_path,
                    env=environment,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
        listing = "export LG_COORDINATOR=127.0.0.1:20408; labgrid-client resources"
        until(lambda: run(listing).stdout.count("my-host/my-am64x/") == 2, 60)
        done = run(client)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Matching resource") == 2
    finally:
        for process in running:
            process.kill()
            process.wait()
