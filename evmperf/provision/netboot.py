"""Boots a kernel, device tree or ramdisk over the network; nothing is written.

Labgrid's TFTPProvider puts the files where the lab's TFTP server looks, and the strategy's
`media.netboot` boots them: its commands find the names in the U-Boot variables netboot_kernel,
netboot_dtb and netboot_ramdisk, of which those that were given are set.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.model.errors import BoardError, LabError, UsageError
from evmperf.provision import identity
from evmperf.provision.ways import Provider, trouble

PARTS = ("kernel", "dtb", "ramdisk")
MEDIUM = "netboot"
_TIMEOUT_S = 30.0


def start(target: Any, board: Board, bench: LabgridBench, given: Mapping[str, str]) -> dict[str, Any]:
    """Boot these files (keys of PARTS) now and at each further boot; returns their facts. Raises UsageError
    for a missing file or way, LabError for a failed transfer or another kernel or device tree, BoardError
    for a failed boot.
    """
    files = {part: _file(part, name) for part, name in given.items()}
    strategy = board.strategy
    if MEDIUM not in strategy["media"]:
        raise UsageError(
            f"{board.file_name} does not describe its U-Boot's network boot: set "
            f"`media.{MEDIUM}` of the strategy (docs/provisioning.md)"
        )
    provider = Provider(target, board, "TFTP", " and ".join(file.name for file in files.values()))
    staged = {part: provider.stage(file, file.name) for part, file in files.items()}
    bench.boot_from(MEDIUM, {f"{MEDIUM}_{part}": name for part, name in staged.items()})
    try:
        shell = bench.shell()
    except BoardError as error:
        if reason := trouble(bench.console_lines()):
            raise LabError(f"the board did not boot over TFTP: {reason} ({error})") from error
        raise
    facts: dict[str, Any] = {
        part: {"name": file.name, "sha256": hashlib.sha256(file.read_bytes()).hexdigest()}
        for part, file in files.items()
    }
    if "kernel" in files and (kernel := identity.kernel(files["kernel"].read_bytes())):
        asked = f"{kernel.release} {kernel.version}"
        _check("kernel", asked, shell.run("uname -rv", _TIMEOUT_S).text)
        facts["kernel"]["version"] = asked
    if "dtb" in files:
        root = identity.nodes(files["dtb"].read_bytes()).get("/", {})
        asked = root.get("model", b"").rstrip(b"\0").decode("utf-8", "replace")
        reply = shell.run("tr -d '\\0' 2>/dev/null </proc/device-tree/model", _TIMEOUT_S)
        _check("device tree's model", asked, reply.text if reply.status == 0 else "")
        facts["dtb"]["model"] = asked
    return facts


def _file(part: str, name: str) -> Path:
    file = Path(name).expanduser()
    if not file.is_file():
        raise UsageError(f"there is no {part} {name}")
    return file.absolute()


def _check(what: str, asked: str, found: str) -> None:
    asked, found = " ".join(asked.split()), " ".join(found.split())
    if asked and found and asked != found:
        raise LabError(
            f"the board does not run the system sent over the network: its {what} is {found!r} "
            f"and not {asked!r}"
        )
