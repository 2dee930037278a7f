"""Writing a medium on another host of the lab, which has Python but not evmperf.

The source of `medium` and `writer` is sent over Labgrid's connection to its exporter, then the
image: a chunk of zeros takes five bytes, other chunks are sent unchanged. Labgrid's AgentWrapper
would execute source text there in the same way, but carries data as base64 in JSON, one call at a
time, which is a third more bytes for an image and allows no progress while a call runs.
"""

import contextlib
import inspect
import json
import shlex
import subprocess
from collections.abc import Sequence
from typing import Any, NamedTuple

from evmperf.model.errors import EvmperfError, LabError, UsageError
from evmperf.provision import medium, writer
from evmperf.provision.medium import CHUNK, MediumError
from evmperf.provision.writer import FRAME, Content, Progress, Source

_START = (
    "import sys;t=sys.stdin.buffer.read({length}).decode();s={{'__name__':'medium'}};"
    "exec(compile(t,'medium','exec'),s);sys.exit(s['serve'](sys.stdin.buffer,sys.stdout.buffer))"
)


_KINDS: dict[str, type[EvmperfError]] = {"usage": UsageError}


class Host(NamedTuple):
    """The host of a medium: this one, or one behind the command `prefix` (`ssh HOST --`)."""

    prefix: Sequence[str] = ()
    name: str = "this host"

    def put(self, path: str, source: Source, content: Content, progress: Progress) -> dict[str, Any]:
        """`writer.put` on that host; raises LabError or UsageError."""
        if self.prefix:
            return self._order({"path": path, **content._asdict()}, source, progress)
        try:
            return writer.put(path, source, content, progress)
        except MediumError as error:
            raise _KINDS.get(error.kind, LabError)(str(error)) from None

    def _order(self, order: dict[str, Any], source: Source, progress: Progress) -> dict[str, Any]:
        text = _program()
        # ssh gives its words to a shell.
        start = shlex.quote(_START.format(length=len(text)))
        command = [*self.prefix, "python3", "-u", "-c", start]
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
                process.stdin.write(text + json.dumps(order).encode() + b"\n")
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
                    result: dict[str, Any] = answer["result"]
                    return result
            said = process.stderr.read().decode(errors="replace").strip().splitlines()
            raise LabError(
                f"{self.name} ended the writing of {order['path']}: "
                f"{said[-1] if said else 'no error message'}; the medium is marked as incomplete: "
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


def _program() -> bytes:
    """Both modules as one text, which imports nothing of ours."""
    texts = inspect.getsource(medium), inspect.getsource(writer)
    lines = [
        line
        for number, text in enumerate(texts)
        for line in text.splitlines()
        if not line.startswith("from evmperf.") and not (number and line.startswith("from __future__"))
    ]
    return "\n".join([*lines, ""]).encode()


def _send(pipe: Any, source: Source, size: int) -> None:
    offset = 0
    for chunk in source():
        length = min(CHUNK, size - offset)
        pipe.write(FRAME.pack(0 if chunk is None else 1, length))
        if chunk is not None:
            pipe.write(chunk[:length])
        offset += length
    pipe.flush()
