"""Variations that follow one another on a board, and the image that each of them runs."""

from __future__ import annotations

from collections.abc import Sequence

from evmperf.boards import variation
from evmperf.boards.board import Board
from evmperf.model.errors import UsageError
from evmperf.provision.record import Book


def with_images(sides: Sequence[Sequence[str]], board: Board) -> list[list[str]]:
    """The words of such variations. Where one of them puts an image on the board, each says which
    it is: one that says none would run what the one before has left there.

    Raises UsageError where nobody knows what is on the board.
    """
    images = [variation.parse(side).provisioned.get("image") for side in sides]
    if not any(images):
        return [list(side) for side in sides]
    known = Book(board).read().good
    if known is None and not all(images):
        without = variation.parse(sides[images.index(None)])
        raise UsageError(
            f"{without}: which image is on {board.name} is not known: say image:FILE for each "
            f"side, or give the board one with `evmperf provision` first"
        )
    return [
        list(side) if image or known is None else [f"image:{known.file}", *side]
        for side, image in zip(sides, images, strict=True)
    ]
