"""Holding a board over many sessions, so that nobody takes it between two rounds."""

import contextlib
import os
import sys
from typing import Self

from evmperf.keeping.claim import JOIN, Claim, variables
from evmperf.keeping.wanted import wanted
from evmperf.measure import boardfile

_BOARD = "EVMPERF_HOLD_BOARD"
"""The variable that says which board `EVMPERF_HOLD` is for, for a program that we start."""


class Holding:
    """Holds one board after the other; sessions that are started meanwhile share the hold.

    `run` is what the holder is called, `wait_s` how long to wait for a board that others hold. A
    board that whoever started us holds already, as a night does, is held by them.
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
        self._let_go()
        self._held.enter_context(variables({JOIN: None, _BOARD: None}))
        file = boardfile.named(board).file
        self._claim = Claim.take(
            wanted(file),
            self._run,
            wait_s=self._wait_s,
            tell=lambda said: print(f"evmperf: {said}", file=sys.stderr, flush=True),
        )
        self._held.callback(self._claim.release)
        self._held.enter_context(variables({JOIN: self._claim.token, _BOARD: board}))
        self._board = board

    def _let_go(self) -> None:
        self._claim, self._board = None, ""
        self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._let_go()
