"""Installing over the network: U-Boot starts a system in memory over TFTP (the strategy's `media.network`),
which gets an image over HTTP and writes a disk. It needs a shell, wget, dd, head and sha256sum, as in
busybox.
"""

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
_SLOWEST = 1 << 18
"""Bytes a second that a disk and its network must at least write and read back."""
_LOOK_S = 60.0
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
        try:
            with self._bench.started_from(_MEDIUM) as shell:
                self._check(shell, image)
                begins()
                self._write(shell, image, url)
        except BoardError as error:
            # What U-Boot said of a transfer that failed is in the error.
            raise LabError(
                f"the system in memory did not write {self._device}: {error}; check the TFTP server, its "
                f"files, the network and the cable, and write the image again"
            ) from error

    def _check(self, shell: Shell, image: DiskImage) -> None:
        survey = self._asked(shell, "look", _LOOK_S)
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
        size = image.size
        whole, rest = divmod(size, _BLOCK)
        limit_s = _LOOK_S + size / _SLOWEST
        try:
            output = self._asked(
                shell, "install", limit_s, url=url, silence=SILENCE_S, whole=whole, rest=rest
            )
        except ToolError:
            raise LabError(
                f"getting {url} and reading it back did not end within {limit_s:.0f} s: the network or the "
                f"disk is too slow"
            ) from None
        if failed := re.search(r"^cannot (write|read): *(.*)", output, re.MULTILINE):
            raise LabError(
                f"{self._device}: the board cannot {failed[1]} it ({failed[2][:160]}): is it "
                f"write-protected? else replace it"
            )
        if not (found := re.search(r"^([0-9a-f]{64})\b", output, re.MULTILINE)):
            words = output.strip().splitlines() or ["the server was silent, cut it, or has no such file"]
            raise LabError(f"the board did not get {url}: {words[-1][:160]}")
        writer.check(self._device, found[1], image)

    def _asked(self, shell: Shell, function: str, limit_s: float, **words: object) -> str:
        """What a function of network.sh prints."""
        values = {"device": self._device, **words}
        variables = [f"{name}={shlex.quote(str(word))}" for name, word in values.items()]
        return shell.run("\n".join([*variables, _SCRIPT + function]), limit_s).text
