"""Writes an image to a disk of the board by a system in memory, started over TFTP (`media.network`), which
fetches it over HTTP. It needs a shell, wget, dd, head and sha256sum, as in busybox.
"""

import contextlib
import json
import re
from typing import Any

from evmperf.boards.board import Board
from evmperf.lab.bench import LabgridBench
from evmperf.measure.bench import Shell
from evmperf.model.errors import BoardError, LabError, ToolError, UsageError
from evmperf.provision.image import DiskImage
from evmperf.provision.ways import Provider, Way, trouble
from evmperf.provision.writer import MARK, Progress

_MEDIUM = "network"
_SHORT_S = 30.0
_SLOWEST = 1 << 19
"""Bytes a second that a disk and its network must at least do."""
SILENCE_S = 30
"""Seconds without a byte after which the board takes the HTTP server to be gone."""
_TRIES = 2
_HEAD = 1 << 20
"""Bytes at the beginning that are written last, and the block size of dd."""

_LOOK = """
cat /sys/class/block/{name}/size /proc/mounts; echo type $(cat /sys/class/block/{name}/device/type)
"""
# Not wget's own -T: a busybox that is built without it crashes of that (CVE-2026-76014).
_WRITE = r"""
set -o pipefail
cd /tmp
printf '{mark}' >mark
failed() {{ echo "cannot write: $(grep -m 1 ^dd: said)"; }}
received() {{
  cat /sys/class/net/*/statistics/rx_bytes | {{
    n=0; while read -r bytes; do n=$((n + bytes)); done; echo $n
  }}
}}
watch_over() {{ # PID: ends it when nothing comes any more
  before=$(received)
  while sleep {silence}; kill -0 $1; do
    now=$(received)
    [ $((now - before)) -gt 65536 ] || {{
      # Said first: who is killed is waited for, and then this one is ended.
      echo "the server said nothing for {silence} s"; kill $1; break
    }}
    before=$now
  done
}}
: >silence
if dd if=mark of={device} bs=4096 count=1 conv=sync,fsync 2>said; then
  (
    wget -q -t 1 -O - '{url}' &
    web=$!
    watch_over $web >silence 2>/dev/null </dev/null &
    wait $web; code=$?
    kill $!; exit $code
  ) | {{
    dd of=head bs=1M count=1 iflag=fullblock 2>/dev/null
    dd of={device} bs=1M seek=1 iflag=fullblock conv=fsync 2>said || failed
  }} && echo fetched
  cat silence
else
  failed
fi
"""
_SUM = r"""
cd /tmp; sync; echo 3 >/proc/sys/vm/drop_caches
{{
  cat head; dd if={device} bs=1M skip=1 count={whole} 2>said
  dd if={device} bs=1M skip={next} count=1 2>>said | head -c {rest}
}} | sha256sum
grep -m 1 ^dd: said
"""
_FINISH = r"""
cd /tmp; dd if=head of={device} bs=1M conv=fsync 2>/dev/null
sync; echo 3 >/proc/sys/vm/drop_caches
head -c {head} {device} | cmp - head && echo whole
"""


class NetworkWay(Way):
    """eMMC, NVMe or another disk of the board, written by the board itself."""

    own_loader = False
    with_power = True

    def __init__(self, target: Any, board: Board, bench: LabgridBench) -> None:
        self._device = board.options.image.device
        self._board, self._bench = board, bench
        self._provider = Provider(target, board, "HTTP", "its image (image.device)")
        self.overwrites = f"{self._device} of the board"
        if not re.fullmatch(r"/dev/[\w/.-]+", self._device):
            raise UsageError(f"{board.file_name}: image.device must be a device, e.g. /dev/mmcblk0")

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Start the system in memory, and have it write and read back."""
        url = self._provider.stage(image.content, image.name)
        with contextlib.ExitStack() as stack:
            try:
                shell = stack.enter_context(self._bench.started_from(_MEDIUM))
            except BoardError as error:
                first = "the board did not start the system in memory over TFTP: "
                reason = trouble(self._bench.console_lines())
                raise LabError(f"{first}{f'{reason} ({error})' if reason else error}") from error
            try:
                return self._install(shell, image, url, progress)
            except BoardError as error:
                raise LabError(
                    f"the board was lost while it wrote {self._device}: {error}; the disk is "
                    f"marked as incomplete: write the image again"
                ) from error

    def _install(self, shell: Shell, image: DiskImage, url: str, progress: Progress) -> dict[str, Any]:
        size = image.hashes.size
        self._check(shell, image)
        for attempt in range(_TRIES):
            progress("write", 0, size)
            self._write(shell, image, url)
            progress("verify", 0, size)
            if self._sum(shell, size) == image.hashes.content:
                self._finish(shell, size)
                return {"written": size, "repeated": attempt * size, "url": url}
        raise LabError(
            f"{self._device} does not keep its data: its SHA-256 differed in each of "
            f"{_TRIES} tries; replace the disk"
        )

    def _check(self, shell: Shell, image: DiskImage) -> None:
        name = self._device.removeprefix("/dev/")
        said = shell.run(_LOOK.format(name=name), _SHORT_S).text
        found = re.match(r"(\d+)\s", said)
        if not found:
            raise LabError(f"the board has no {self._device}: check the disk and the system's driver for it")
        # Linux numbers cards as it finds them, where the device tree does not say.
        if self._board.options.boot.medium == "emmc" and re.search(r"^type SD$", said, re.MULTILINE):
            raise LabError(
                f"{self._device} is an SD card this time, and not the eMMC: the system of "
                f"media.network must probe the controllers one after the other"
            )
        if int(found[1]) * 512 < image.hashes.size:
            raise UsageError(
                f"the image has {image.hashes.size} bytes and {self._device} only "
                f"{int(found[1]) * 512}: use a larger disk"
            )
        if re.search(rf"^{re.escape(self._device)}\S* ", said, re.MULTILINE):
            raise LabError(f"{self._device} is mounted on the board: media.network must not use it")

    def _write(self, shell: Shell, image: DiskImage, url: str) -> None:
        said = json.dumps({"image": image.name, "sha256": image.hashes.content})
        mark = (MARK.decode() + said).replace("\n", "\\n").replace("'", "_").replace("%", "%%")
        text = _WRITE.format(mark=mark, device=self._device, url=url, silence=SILENCE_S)
        said = self._run(shell, text, image.hashes.size, f"getting {url}")
        if failed := re.search(r"^cannot write: *(.*)", said, re.MULTILINE):
            raise LabError(
                f"{self._device} cannot be written on the board ({failed[1][:160]}): is it "
                f"write-protected? else replace it"
            )
        if "fetched" not in said:
            words = said.strip().splitlines() or ["the server was silent, cut it, or has no such file"]
            raise LabError(f"the board did not get {url}: {words[-1][:160]}")

    def _sum(self, shell: Shell, size: int) -> str:
        # busybox's head counts byte by byte: it gets no more than what is left of a mebibyte.
        whole, rest = divmod(max(size - _HEAD, 0), _HEAD)
        text = _SUM.format(device=self._device, whole=whole, next=whole + 1, rest=rest)
        said = self._run(shell, text, size, f"reading {self._device} back")
        failed = re.search(r"^dd: .*", said, re.MULTILINE)
        found = re.search(r"^([0-9a-f]{64})\b", said, re.MULTILINE)
        if failed or not found:
            reason = failed[0].strip() if failed else "no SHA-256 came"
            raise LabError(f"{self._device} cannot be read back on the board ({reason}): replace it")
        return found[1]

    def _run(self, shell: Shell, text: str, size: int, what: str) -> str:
        try:
            return shell.run(text, _limit(size)).text
        except ToolError:
            raise LabError(
                f"{what} did not end within {_limit(size):.0f} s: the network or the disk is too slow"
            ) from None

    def _finish(self, shell: Shell, size: int) -> None:
        text = _FINISH.format(device=self._device, head=min(size, _HEAD))
        if "whole" not in shell.run(text, _SHORT_S).text:
            raise LabError(f"{self._device} does not keep its first block: replace the disk")


def _limit(size: int) -> float:
    return 60 + size / _SLOWEST
