"""Requests to processes of their own: one of them that ends does not end us."""

import contextlib
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path

import msgspec

from evmperf.commands.app.requests import Hear, News, Replies, Request
from evmperf.model.errors import Kind
from evmperf.model.replies import Failed, Reply


class Calls:
    """Requests, one after the other; `log` gets all replies, and what is printed meanwhile. The
    processes have `variables` besides our environment.
    """

    def __init__(self, log: Path, variables: Mapping[str, str] | None = None) -> None:
        self._log = log
        self._variables = variables or {}
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._cut = False

    def ask(
        self,
        request: Request,
        hear: Hear = lambda reply: None,
        *,
        last: bool = False,
        timeout_s: float | None = None,
    ) -> Reply:
        """The result of a request, or Failed, also after `timeout_s`; `hear` gets each piece of news.

        After `cut` only a `last` request is made. Whatever is raised meanwhile ends the process.
        """
        ended: Reply | None = None
        with self._log.open("ab", buffering=0) as log:
            with self._lock:
                if self._cut and not last:
                    return Failed(kind=Kind.LAB, sentence="the night had to end")
                self._process = process = subprocess.Popen(
                    [sys.executable, "-m", "evmperf.commands.app"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                    start_new_session=True,
                    env={**os.environ, **self._variables},
                )
            assert process.stdin
            assert process.stdout
            late = threading.Timer(timeout_s or threading.TIMEOUT_MAX, process.terminate)
            if timeout_s:
                late.start()
            try:
                with contextlib.suppress(BrokenPipeError), process.stdin:
                    process.stdin.write(msgspec.json.encode(request))
                with process.stdout:
                    for line in process.stdout:
                        log.write(line)
                        reply: Replies = msgspec.json.decode(line, type=Replies)
                        if isinstance(reply, News):
                            hear(reply)
                        else:
                            ended = reply
                status = process.wait()
            except BaseException:
                process.terminate()  # it may have a board, which it switches off
                process.wait()
                raise
            finally:
                late.cancel()
        why = f"the process that worked on it ended with status {status}: see {self._log}"
        return ended or Failed(kind=Kind.LAB, sentence=why)

    def cut(self, *, hurry: bool = False) -> None:
        """End the process of the request, in either case at once; callable in any thread."""
        with self._lock:
            self._cut = True
            if self._process:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
