"""Installing over the network: U-Boot starts a system in memory over TFTP (the strategy's `media.network`),
which gets an image over HTTP and writes a disk. It needs a shell, wget, dd, head and sha256sum, as in
busybox.
"""

import contextlib
import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

from labgrid.driver.exception import ExecutionError
from labgrid.exceptions import NoDriverFoundError

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.lab.provision import writer
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.ways import Way
from evmperf.measure.bench import Shell
from evmperf.model.errors import BoardError, LabError, ToolError, UsageError, one_line

SILENCE_S = 30
"""Seconds without a byte after which the board takes the HTTP server to be gone."""
_MEDIUM = "network"
"""The strategy's medium that starts the system in memory."""
_SLOWEST = 1 << 19
"""Bytes a second that a disk and its network must at least do."""
_BLOCK = 1 << 20
_SCRIPT = Path(__file__).with_name("network.sh").read_text("utf-8")


class NetworkWay(Way):
    """eMMC, NVMe or another disk of the board, written by the board itself."""

    own_loader = False
    with_power = True

    def __init__(self, target: Any, board: Board, bench: LabgridBench) -> None:
        self._device = board.options.image.device
        self._board, self._bench = board, bench
        try:
            self._provider = target.get_driver("HTTPProviderDriver")
        except (NoDriverFoundError, KeyError):
            raise UsageError(
                f"{board.file_name} names no HTTPProvider with its driver, which gives the board its image "
                f"(image.device; docs/provisioning.md)"
            ) from None
        self.overwrites = f"{self._device} of the board"
        if not re.fullmatch(r"/dev/[\w/.-]+", self._device):
            raise UsageError(f"{board.file_name}: image.device must be a device, e.g. /dev/mmcblk0")

    def put(self, image: DiskImage, begins: Callable[[], None]) -> None:
        """Start the system in memory, and have it write and read back."""
        try:
            url = str(self._provider.stage(str(image.content)))
        except (OSError, subprocess.SubprocessError, ExecutionError) as error:
            raise LabError(
                f"{image.name} cannot be put where the lab's HTTP server looks (HTTPProvider's internal): "
                f"{one_line(error, 160)}"
            ) from None
        with contextlib.ExitStack() as stack:
            try:
                shell = stack.enter_context(self._bench.started_from(_MEDIUM))
            except BoardError as error:
                # What U-Boot said of a transfer that failed is in the error.
                raise LabError(
                    f"the board did not start the system in memory over TFTP: {error}; check the TFTP "
                    f"server, its files, the network and the cable"
                ) from error
            try:
                self._check(shell, image)
                begins()
                self._write(shell, image, url)
                writer.check(self._device, self._sum(shell, image.size), image)
            except BoardError as error:
                raise LabError(
                    f"the board was lost while it wrote {self._device}: {error}; write the image again"
                ) from error

    def _ask(self, shell: Shell, function: str, size: int = 0, **words: object) -> str:
        """What a function of network.sh prints that works on so many bytes."""
        values = {"device": self._device, **words}
        variables = [f"{name}={shlex.quote(str(word))}" for name, word in values.items()]
        try:
            return shell.run("\n".join([*variables, _SCRIPT + function]), _limit(size)).text
        except ToolError:
            what = f"getting {words['url']}" if "url" in words else f"reading {self._device} back"
            raise LabError(
                f"{what} did not end within {_limit(size):.0f} s: the network or the disk is too slow"
            ) from None

    def _check(self, shell: Shell, image: DiskImage) -> None:
        survey = self._ask(shell, "look")
        size = re.match(r"(\d+)\s", survey)
        if not size:
            raise LabError(f"the board has no {self._device}: check the disk and the system's driver for it")
        # Linux numbers cards as it finds them, where the device tree does not say.
        if self._board.options.boot.medium == "emmc" and re.search(r"^type SD$", survey, re.MULTILINE):
            raise LabError(
                f"{self._device} is an SD card this time, and not the eMMC: the system of "
                f"media.network must probe the controllers one after the other"
            )
        if int(size[1]) * 512 < image.size:
            raise UsageError(
                f"the image has {image.size} bytes and {self._device} only "
                f"{int(size[1]) * 512}: use a larger disk"
            )
        if re.search(rf"^{re.escape(self._device)}\S* ", survey, re.MULTILINE):
            raise LabError(f"{self._device} is mounted on the board: media.network must not use it")

    def _write(self, shell: Shell, image: DiskImage, url: str) -> None:
        output = self._ask(shell, "write_disk", image.size, url=url, silence=SILENCE_S)
        if failed := re.search(r"^cannot write: *(.*)", output, re.MULTILINE):
            raise LabError(
                f"{self._device} cannot be written on the board ({failed[1][:160]}): is it "
                f"write-protected? else replace it"
            )
        if "fetched" not in output:
            words = output.strip().splitlines() or ["the server was silent, cut it, or has no such file"]
            raise LabError(f"the board did not get {url}: {words[-1][:160]}")

    def _sum(self, shell: Shell, size: int) -> str:
        whole, rest = divmod(size, _BLOCK)
        output = self._ask(shell, "read_back", size, whole=whole, rest=rest)
        failed = re.search(r"^dd: .*", output, re.MULTILINE)
        checksum = re.search(r"^([0-9a-f]{64})\b", output, re.MULTILINE)
        if failed or not checksum:
            reason = failed[0].strip() if failed else "no SHA-256 came"
            raise LabError(f"{self._device} cannot be read back on the board ({reason}): replace it")
        return checksum[1]


def _limit(size: int) -> float:
    return 60 + size / _SLOWEST
