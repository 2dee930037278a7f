"""Registers the lab with the LAVA server; fed to `lava-server manage shell` by `init`."""

import contextlib
import io
import os
import pathlib

from django.core.management import call_command


def manage(*words):
    """Run a command of `lava-server manage`; what it printed."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        call_command(*words, stdout=said)
    return said.getvalue().strip()


os.umask(0o077)
lab = pathlib.Path("/lab")
manage("users", "add", "--superuser", "--passwd", os.urandom(16).hex(), "evmperf")
(lab / "token").write_text(manage("tokens", "add", "--user", "evmperf"))
(lab / "worker-token").write_text(manage("workers", "add", "lab").removeprefix("Token: "))
for template in sorted((lab / "devices").glob("*.jinja2")):
    kind = template.read_text().split("'")[1].removesuffix(".jinja2")
    with contextlib.suppress(Exception):
        manage("device-types", "add", kind)
    # The host's Labgrid reaches the virtual EVM, so it takes jobs of that board.
    tags = ["--tags", "virtual"] if kind == "evm-lab-host" else []
    manage("devices", "add", template.stem, "--device-type", kind, "--worker", "lab", *tags)
