"""How an image gets onto a board's boot medium: by a card switch or the lab's own command.

A card may be on another host of the lab, which has Python but not evmperf. The file of `writer` is copied
over Labgrid's connection to its exporter and run there, then comes the image: a chunk of zeros takes five
bytes. Labgrid's AgentWrapper would carry it as base64 in JSON, a third more bytes, and without progress while
a call runs.
"""

import contextlib
import json
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from evmperf.boards.board import Board
from evmperf.lab.media import CardSwitch
from evmperf.lab.provision import writer
from evmperf.lab.provision.image import DiskImage
from evmperf.lab.provision.writer import CHUNK, FRAME, Content, MediumError, Progress, Source
from evmperf.model.errors import EvmperfError, LabError, UsageError

_COMMAND_S = 3600.0
_START = (
    "file=$(mktemp) && dd bs=1 count={length} of=$file 2>/dev/null && python3 -u $file; "
    "status=$?; rm -f $file; exit $status"
)
"""Bytes one by one: what comes behind the file is the program's to read."""
_KINDS: dict[str, type[EvmperfError]] = {"usage": UsageError}


class Host(NamedTuple):
    """The host of a medium: this one, or one behind the command `prefix` (`ssh HOST --`)."""

    prefix: Sequence[str] = ()
    name: str = "this host"

    def put(self, path: str, source: Source, content: Content, progress: Progress) -> dict[str, object]:
        """`writer.put` on that host; raises LabError or UsageError."""
        if self.prefix:
            return self._order({"path": path, **content._asdict()}, source, progress)
        try:
            return writer.put(path, source, content, progress)
        except MediumError as error:
            raise _KINDS.get(error.kind, LabError)(str(error)) from None

    def _order(self, order: dict[str, Any], source: Source, progress: Progress) -> dict[str, Any]:
        program = Path(writer.__file__).read_bytes()
        # ssh gives its words to a shell, whichever that is.
        command = [*self.prefix, f"sh -c {shlex.quote(_START.format(length=len(program)))}"]
        try:
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
            )
        except OSError as error:
            raise LabError(f"{command[0]} cannot be started: {error.strerror}") from None
        assert process.stdin
        assert process.stdout
        assert process.stderr
        try:
            with contextlib.suppress(BrokenPipeError):
                process.stdin.write(program + json.dumps(order).encode() + b"\n")
                process.stdin.flush()
            for line in process.stdout:
                answer = json.loads(line)
                if "need" in answer:
                    with contextlib.suppress(BrokenPipeError):
                        _send(process.stdin, source, order["size"])
                elif "progress" in answer:
                    progress(*answer["progress"])
                elif "error" in answer:
                    raise _KINDS.get(answer["kind"], LabError)(f"on {self.name}: {answer['error']}")
                elif "result" in answer:
                    result: dict[str, object] = answer["result"]
                    return result
            lines = process.stderr.read().decode(errors="replace").strip().splitlines()
            raise LabError(
                f"{self.name} ended the writing of {order['path']}: "
                f"{lines[-1] if lines else 'no error message'}; the medium is marked as incomplete: "
                f"write the image again"
            )
        except ValueError:
            raise LabError(
                f"{self.name} does not speak evmperf's protocol: does its shell or Python print a "
                f"greeting? Remove it for non-interactive logins"
            ) from None
        finally:
            with contextlib.suppress(OSError):
                process.stdin.close()
            process.kill()
            process.wait()
            process.stdout.close()
            process.stderr.close()


def _send(pipe: Any, source: Source, size: int) -> None:
    offset = 0
    for chunk in source():
        length = min(CHUNK, size - offset)
        pipe.write(FRAME.pack(0 if chunk is None else 1, length))
        if chunk is not None:
            pipe.write(chunk[:length])
        offset += length
    pipe.flush()


class Way:
    """One way of writing a board's boot medium."""

    overwrites: str
    """What will be overwritten, for people."""
    own_loader = True
    """Whether the board then starts by the image's own boot loader."""
    with_power = False
    """Whether the board itself writes; else its power is off meanwhile."""

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Make the medium equal to the image; what `writer.put` returns, as far as it is known."""
        raise NotImplementedError

    def ready(self) -> None:
        """See, before each power-on, that the board has its medium, and that it is whole."""


def write(host: Host, path: str, image: DiskImage, progress: Progress) -> dict[str, Any]:
    """Make a medium at `host` equal to an image; what `writer.put` returns."""
    about = Content(image.hashes.size, image.hashes.content, image.name)
    source = writer.chunks_of(str(image.content), image.hashes.size)
    return host.put(path, source, about, progress)


class CardWay(Way):
    """An SD card that a switch moves between board and host."""

    overwrites = "the card behind the card switch"

    def __init__(self, switch: CardSwitch) -> None:
        self._switch = switch

    def put(self, image: DiskImage, progress: Progress) -> dict[str, Any]:
        """Write the card at the host, and move it back into the board."""
        self._switch.to("host")
        try:
            prefix = self._switch.prefix()
            host = Host(prefix, "the exporter" if prefix else "this host")
            return write(host, self._switch.medium(), image, progress)
        finally:
            self._switch.to("dut")

    def ready(self) -> None:
        """Have the card in the board."""
        self._switch.to("dut")


class CommandWay(Way):
    """The lab's own command: snagboot for an empty board, or a flasher it has."""

    def __init__(self, command: str, board: Board) -> None:
        self._command, self._board = command, board
        if "{image}" not in command:
            raise UsageError(f"{board.file_name}: image.command must have {{image}} in it")
        self.overwrites = f"the medium that `{self._command}` writes"

    def put(self, image: DiskImage, progress: Progress) -> dict[str, object]:
        """Call the command with the image as it was given; its own output is its error's reason."""
        command = self._command.replace("{image}", shlex.quote(str(image.file)))
        progress("write", 0, image.hashes.size)
        try:
            done = subprocess.run(
                ["sh", "-c", command],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=_COMMAND_S,
                cwd=Path(self._board.file).resolve().parent,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise LabError(f"`{command[:80]}` did not end within {_COMMAND_S:g} s") from None
        if done.returncode:
            lines = (done.stderr + done.stdout).strip().splitlines() or ["without a message"]
            raise LabError(f"`{command[:80]}` ended with {done.returncode}: {lines[-1][:200]}")
        return {"by": self._command}
