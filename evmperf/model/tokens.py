"""Tokens, and addresses of servers, that people give in variables and files."""

from urllib.parse import urlsplit

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


def address(given: str, name: str) -> str:
    """The address of a server without a slash at its end; raises UsageError for one that is none, or holds a
    password, which messages would show.
    """
    try:
        parts = urlsplit(given)
        found = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:  # of brackets or the port
        found = False
    if not found:
        raise UsageError(f"{name} is not an address like http://HOST:PORT")
    if parts.username or parts.password:
        raise UsageError(f"{name}: the address holds a password; give a token instead")
    return given.rstrip("/")
