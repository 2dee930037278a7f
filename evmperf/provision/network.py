"""An image for a disk that only the board reaches: a system in memory fetches and writes it.

U-Boot starts that system over TFTP (the strategy's `media.network`), which then gets the image over
HTTP, from where Labgrid's HTTPProvider puts files. It needs a shell, wget, dd, head and sha256sum:
busybox has them.
"""

from __future__ import annotations

import json
import re
import subprocess
from typing import Any

from labgrid.driver.exception import ExecutionError
from labgrid.exceptions import NoDriverFoundError

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.measure.bench import Shell
from evmperf.model.errors import LabError, ToolError, UsageError
from evmperf.provision.image import Image
from evmperf.provision.writer import MARK, Progress

_MEDIUM = "network"
_SHORT_S = 30.0
_SLOWEST = 1 << 20
"""Bytes a second that a disk and its network must at least do."""
_TRIES = 2

_LOOK = "cat /sys/class/block/{name}/size; cat /proc/mounts"
_WRITE = r"""
set -o pipefail
cd /tmp
printf '{mark}' >mark
dd if=mark of={device} bs=4096 count=1 conv=sync,fsync 2>/dev/null || echo "cannot write"
wget -q -T 30 -O - '{url}' | {{
  dd of=head bs=1M count=1 iflag=fullblock 2>/dev/null
  dd of={device} bs=1M seek=1 iflag=fullblock conv=fsync 2>said || cat said
}} && echo fetched
"""
_SUM = r"""
cd /tmp; sync; echo 3 >/proc/sys/vm/drop_caches
{{ cat head; dd if={device} bs=1M skip=1 2>/dev/null | head -c {rest}; }} | sha256sum
"""
_FINISH = r"""
cd /tmp; dd if=head of={device} bs=1M conv=fsync 2>/dev/null
sync; echo 3 >/proc/sys/vm/drop_caches
head -c {head} {device} | cmp - head && echo whole
"""


class NetworkWay:
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
                f"{board.file_name} says image.device, but no HTTPProvider with its driver, which "
                f"gives the board its image (docs/provisioning.md)"
            ) from None
        if not re.fullmatch(r"/dev/[\w/.-]+", self._device):
            raise UsageError(f"{board.file_name}: image.device must be a device, e.g. /dev/mmcblk0")

    def describe(self) -> str:
        """What will be overwritten, for people."""
        return f"{self._device} of the board"

    def put(self, image: Image, progress: Progress) -> dict[str, Any]:
        """Start the system in memory, and have it write and read back."""
        url = self._stage(image)
        size = image.hashes.size
        with self._bench.started_from(_MEDIUM) as shell:
            self._check(shell, image)
            for attempt in range(_TRIES):
                progress("write", 0, size)
                self._write(shell, image, url)
                progress("verify", 0, size)
                if self._sum(shell, size) == image.hashes.content:
                    self._finish(shell, size)
                    return {"written": size, "repeated": attempt * size, "url": url}
        raise LabError(
            f"{self._device} does not hold what is written to it: its SHA-256 is another each "
            f"time, in {_TRIES} tries; replace the disk"
        )

    def _stage(self, image: Image) -> str:
        try:
            return str(self._provider.stage(str(image.content)))
        except (OSError, subprocess.SubprocessError, ExecutionError) as error:
            raise LabError(
                f"{image.name} cannot be put where the lab's HTTP server looks (HTTPProvider's "
                f"internal): {' '.join(str(error).split())[:160]}"
            ) from None

    def ready(self) -> None:
        """Nothing to see to: the disk is in the board."""

    def _check(self, shell: Shell, image: Image) -> None:
        name = self._device.removeprefix("/dev/")
        said = shell.run(_LOOK.format(name=name), _SHORT_S).text
        found = re.match(r"(\d+)\s", said)
        if not found:
            raise LabError(f"the board has no {self._device}: is the disk in, and in its drivers?")
        if int(found[1]) * 512 < image.hashes.size:
            raise UsageError(
                f"the image has {image.hashes.size} bytes and {self._device} only "
                f"{int(found[1]) * 512}: use a larger disk"
            )
        if re.search(rf"^{re.escape(self._device)}\S* ", said, re.MULTILINE):
            raise LabError(f"{self._device} is mounted on the board: media.network must not use it")

    def _write(self, shell: Shell, image: Image, url: str) -> None:
        said = json.dumps({"image": image.name, "sha256": image.hashes.content})
        mark = (MARK.decode() + said).replace("\n", "\\n").replace("'", "_").replace("%", "%%")
        text = _WRITE.format(mark=mark, device=self._device, url=url)
        try:
            reply = shell.run(text, _limit(image.hashes.size))
        except ToolError as error:
            raise LabError(f"the board did not get {url}: {error}") from None
        if "fetched" not in reply.text:
            words = reply.text.strip().splitlines() or [
                "the server was silent, cut it, or has no such file"
            ]
            raise LabError(f"the board did not get {url}: {words[-1][:160]}")

    def _sum(self, shell: Shell, size: int) -> str:
        head = min(size, 1 << 20)
        text = _SUM.format(device=self._device, rest=size - head)
        found = re.search(r"^([0-9a-f]{64})\b", shell.run(text, _limit(size)).text, re.MULTILINE)
        if not found:
            raise LabError(f"{self._device} cannot be read back on the board")
        return found[1]

    def _finish(self, shell: Shell, size: int) -> None:
        text = _FINISH.format(device=self._device, head=min(size, 1 << 20))
        if "whole" not in shell.run(text, _SHORT_S).text:
            raise LabError(f"{self._device} does not keep its first block: replace the disk")


def _limit(size: int) -> float:
    return 60 + size / _SLOWEST
