"""What a section of a board file is, and the kinds of values in it."""

from typing import Annotated

import msgspec
from msgspec import Meta

Text = Annotated[str, Meta(min_length=1)]
Count = Annotated[int, Meta(ge=1)]
Number = Annotated[int, Meta(ge=0)]


def about(text: str) -> Meta:
    """What an option means, for messages, documentation and editors."""
    return Meta(description=text)


class Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A section of the options."""
