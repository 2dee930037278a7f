"""Tokens that people give in variables and files."""

from evmperf.model.errors import UsageError


def usable(given: str, name: str) -> str:
    """A token or another setting without what editors and `cat` leave around it; raises UsageError for one
    that no header of HTTP takes, whose own error would show it.
    """
    token = given.strip("\ufeff\u200b \t\r\n")
    if not (token.isascii() and token.isprintable()):
        bad = next(c for c in token if not (c.isascii() and c.isprintable()))
        raise UsageError(
            f"{name} has the character U+{ord(bad):04X} at {token.index(bad) + 1} of {len(token)}, which no "
            f"token has: copy it again"
        )
    return token
