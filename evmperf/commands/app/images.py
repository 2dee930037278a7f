"""The words of `--images`: which board gets which image."""

import re
from collections.abc import Iterable, Sequence

from evmperf.model.errors import UsageError

_NAMED = re.compile(r"([A-Za-z0-9][\w.-]*)=(.+)", re.DOTALL)


def by_board(words: Iterable[str], boards: Sequence[str]) -> dict[str, str]:
    """The image of each of `boards` that gets one, of words `IMAGE` (for all) and `BOARD=IMAGE`, where an
    image is what `pytest --image` takes. Raises UsageError for an unknown board, and for one with two images.
    """
    everywhere: list[str] = []
    own: dict[str, str] = {}
    for word in words:
        named = _NAMED.fullmatch(word)
        if named is None:
            everywhere.append(word)
        elif named[1] not in boards:
            raise UsageError(
                f"image {word}: {named[1]} is not a board of this night; known are {', '.join(boards)}"
            )
        elif named[1] in own:
            raise UsageError(f"{named[1]} is given two images: {own[named[1]]} and {named[2]}")
        else:
            own[named[1]] = named[2]
    if len(everywhere) > 1:
        raise UsageError(f"{everywhere[0]} and {everywhere[1]} are both for all boards: write BOARD=IMAGE")
    return {**dict.fromkeys(boards if everywhere else (), *everywhere), **own}
