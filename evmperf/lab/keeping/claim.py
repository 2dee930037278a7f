"""A session's side of the keeper: hold a board, ask before each action, hear of a loss, see who holds."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import select
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from msgspec.structs import replace

from evmperf.boards import board as boards
from evmperf.lab.keeping import locks, wire
from evmperf.lab.keeping.wanted import Holder, HoldRecord, Wanted, placement
from evmperf.model.errors import BoardLost, EvmperfError, Kind, LabError, UsageError
from evmperf.model.places import for_children

_ANSWER_S = 10.0
"""Time limit for an answer of the keeper, which does no long work."""
_START_S = 20.0
_TAKE_S = 60.0
"""Time limit for Labgrid's import, the connection and an acquire, added to the waiting time."""

JOIN = "EVMPERF_HOLD"
"""The environment variable by which a night passes its hold to a session."""
_BOARD = "EVMPERF_HOLD_BOARD"
"""The variable that says which board `EVMPERF_HOLD` is for, for a program that we start."""


@contextlib.contextmanager
def variables(values: Mapping[str, str | None]) -> Iterator[None]:
    """Within it, the environment has these variables, and lacks those whose value is None."""
    before = {name: os.environ.pop(name, None) for name in values}
    try:
        os.environ |= {name: value for name, value in values.items() if value is not None}
        yield
    finally:
        for name in values:
            os.environ.pop(name, None)
        os.environ |= {name: value for name, value in before.items() if value is not None}


class KeeperLink:
    """A connection to this host's keeper, started if necessary: one JSON object a line, both ways. Raises
    LabError.
    """

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._answers: dict[int, dict[str, Any]] = {}
        self._arrived = threading.Condition()
        self._sending = threading.Lock()
        self.closed = False
        self.ended = ""
        """Why the keeper is gone, "" while it runs."""
        self._socket = _connect()
        self._reader = threading.Thread(target=self._read, name="keeper", daemon=True)
        self._reader.start()

    def hear(self, news: Mapping[str, Any]) -> None:
        """Take an unsolicited message of the keeper, "lost" last; called in another thread."""

    def ask(self, do: str, timeout_s: float = _ANSWER_S, **what: Any) -> dict[str, Any]:
        """Send a request, wait for the answer; raises the keeper's error, LabError without one."""
        number = next(self._numbers)
        self._send(do, n=number, **what)
        with self._arrived:
            self._arrived.wait_for(lambda: number in self._answers or self.ended, timeout_s)
            answer = self._answers.pop(number, None)
        if answer is None:
            raise LabError(self.ended or f"the keeper did not answer within {timeout_s:g} s")
        if "error" in answer:
            raise (UsageError if answer.get("kind") == Kind.USAGE else LabError)(answer["error"])
        return answer

    def say(self, do: str, **what: Any) -> None:
        """Send a message that needs no answer."""
        with contextlib.suppress(LabError):
            self._send(do, **what)

    def close(self) -> None:
        """Close the connection; the keeper releases what it held through it."""
        self.closed = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        if threading.current_thread() is not self._reader:
            self._reader.join(_ANSWER_S)
        self._socket.close()

    def _send(self, do: str, **what: Any) -> None:
        with self._sending:
            try:
                self._socket.sendall(wire.encode({"do": do, **what}))
            except OSError as error:
                raise LabError(self.ended or f"the keeper is gone ({error.strerror})") from None

    def _read(self) -> None:
        with contextlib.suppress(OSError, ValueError), self._socket.makefile("rb") as lines:
            for line in lines:
                message = json.loads(line)
                if "re" in message:
                    with self._arrived:
                        self._answers[message["re"]] = message
                        self._arrived.notify_all()
                else:
                    self.hear(message)
        with self._arrived:
            self.ended = "the keeper of this host has ended"
            self._arrived.notify_all()
        if not self.closed:
            self.hear({"lost": self.ended})


def ask_once(do: str, **what: Any) -> dict[str, Any]:
    """The keeper's answer to one request, which may need Labgrid's import; raises as `KeeperLink.ask`."""
    with contextlib.closing(KeeperLink()) as link:
        return link.ask(do, _TAKE_S, **what)


def holders(coordinator: str) -> list[HoldRecord]:
    """The records of all held boards on this host and, if given, at a coordinator. Raises LabError."""
    records = locks.held()
    if coordinator:
        here = {r.place for r in records if r.coordinator == coordinator}
        remote = [place for place in places(coordinator) if place["name"] not in here]
        records += filter(None, (holder(place, coordinator) for place in remote))
    return sorted(records, key=lambda record: record.place)


def holder(place: Mapping[str, Any], coordinator: str) -> HoldRecord | None:
    """The record of a place of `places` that somebody holds, by hand or by any keeper."""
    if not place["acquired"]:
        return None
    return HoldRecord.of_place(place["name"], place["acquired"], place["changed"], place["tags"], coordinator)


def places(coordinator: str) -> list[dict[str, Any]]:
    """All places of a coordinator: name, tags, acquired, changed, ready; raises LabError."""
    return list(ask_once("places", coordinator=coordinator)["places"])


class Claim(KeeperLink):
    """A board that is held until `release` or its loss. Another thread calls `on_lost` with the reason."""

    def __init__(self, board: Wanted) -> None:
        self.board = board
        self.lost = ""
        """Why the board was lost, "" while it is held."""
        self.user = self.host = ""
        """The holder's names at the coordinator."""
        self.borrowed = False
        """Whether the user acquired the place by hand."""
        self.token = ""
        self.on_lost: Callable[[str], None] = lambda sentence: None
        self._tell: Callable[[str], None] = lambda sentence: None
        super().__init__()

    @classmethod
    def take(
        cls,
        board: Wanted,
        run: str,
        *,
        until: float = 0.0,
        wait_s: float = 0.0,
        priority: float = 0.0,
        tell: Callable[[str], None] = lambda sentence: None,
    ) -> Claim:
        """Hold a board for a run that is expected to end at `until` (seconds since the epoch).

        Waits at most `wait_s` for a busy board and reports the wait to `tell`. A night shares a board that it
        holds with its sessions. Raises UsageError if the board is busy or unknown, LabError if the lab does
        not answer.
        """
        asked = {"until": until, "wait_s": wait_s, "priority": priority}
        for last in (False, True):
            claim = cls(board)
            claim._tell = tell
            try:
                if token := os.environ.get(JOIN):
                    held = claim.ask("join", token=token)
                else:
                    by = Holder.here(run)
                    held = claim.ask("hold", _TAKE_S + wait_s, wanted=board, holder=by, **asked)
                break
            except BaseException as error:
                claim.close()
                # Retry only after an error: Ctrl-C does not mean that the keeper ended.
                if last or not claim.lost or not isinstance(error, Exception):
                    raise
                # The keeper was ending for lack of use: the next try starts a new one.
        claim.board = replace(board, place=held["place"])
        claim.token, claim.borrowed = held["token"], held["borrowed"]
        claim.user, claim.host = held["user"], held["host"]
        return claim

    def check(self) -> None:
        """Ask the keeper whether the board is still ours; raises BoardLost."""
        if not self.lost:
            try:
                lost = self.ask("check")["lost"]
            except LabError as error:
                lost = str(error)
            if lost and not self.lost:
                self.hear({"lost": lost})
        if self.lost:
            raise BoardLost(self.lost)

    def doing(self, what: str, until: float = 0.0) -> None:
        """Report the current case and the expected end, for `evmperf lab who`."""
        self.say("doing", what=what, until=until)

    def release(self) -> None:
        """Release the board; a second call does nothing."""
        if self.closed:
            return
        with contextlib.suppress(EvmperfError):
            self.ask("release")
        self.close()

    def hear(self, news: Mapping[str, Any]) -> None:
        """Note a loss, who took the board, or the reason of a wait."""
        if "lost" in news:
            # A second message names the taker; the end of the keeper says less.
            first = not self.lost
            if first or news.get("taken"):
                self.lost = news["lost"]
            if first:
                self.on_lost(self.lost)
        elif "waiting" in news:
            self._tell(news["waiting"])


class Holding:
    """Holds one board after the other for `run`, waiting at most `wait_s` for each; sessions that are
    started meanwhile share the hold. A board that whoever started us holds already stays theirs.
    """

    def __init__(self, run: str, wait_s: float = 0.0) -> None:
        self._run, self._wait_s, self._board = run, wait_s, ""
        self._claim: Claim | None = None
        self._held = contextlib.ExitStack()

    def have(self, board: str) -> None:
        """Hold the board of this file in place of any other; raises UsageError or LabError."""
        if board == self._board:
            if self._claim:
                self._claim.check()
            return
        if not self._board and os.environ.get(JOIN) and os.environ.get(_BOARD, board) == board:
            self._board = board
            return
        self.__exit__()
        self._held.enter_context(variables({JOIN: None, _BOARD: None}))
        self._claim = Claim.take(
            placement(boards.find(board)),
            self._run,
            wait_s=self._wait_s,
            tell=lambda sentence: print(f"evmperf: {sentence}", file=sys.stderr, flush=True),
        )
        self._held.callback(self._claim.release)
        self._held.enter_context(variables({JOIN: self._claim.token, _BOARD: board}))
        self._board = board

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._claim, self._board = None, ""
        self._held.close()


def _connect() -> socket.socket:
    """A connection to the keeper, started in the background if none runs; raises LabError."""
    path = wire.socket_path()
    deadline = time.monotonic() + _START_S
    while True:
        link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            link.connect(str(path))
        except OSError as error:
            link.close()
            if time.monotonic() > deadline:
                raise LabError(
                    f"the keeper of this host did not start ({error.strerror}): see {path}.log"
                ) from None
        else:
            return link
        try:
            with Path(f"{path}.log").open("ab") as log:
                subprocess.run(
                    # -P: do not import an evmperf of the current folder.
                    [sys.executable, "-P", "-m", "evmperf.lab.keeping.server"],
                    env=for_children(os.environ),
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    timeout=_START_S,
                    check=False,
                )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise LabError(f"the keeper of this host did not start: {error}") from None
        select.select([], [], [], 0.02)
