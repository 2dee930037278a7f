"""Secrets in what is kept and said."""


class Typed:
    """A secret that was typed on a console, and its echo: a terminal that does not hide it yet repeats it in
    the line where it stands. Both are kept as so many asterisks.
    """

    def __init__(self, secret: bytes) -> None:
        self.asterisks = b"*" * len(secret)
        self._secret = secret
        self._echoed = 0

    def without(self, said: bytes) -> bytes:
        """What the board said next, of the same length; after the end of the line nothing is replaced."""
        line, end, rest = said.partition(b"\n")
        shown = bytearray(line if self._secret else b"")
        for index, byte in enumerate(shown):
            if byte != self._secret[self._echoed]:
                self._echoed = 0
            if byte == self._secret[self._echoed]:
                shown[index] = ord("*")
                self._echoed = (self._echoed + 1) % len(self._secret)
        if end:
            self._secret = b""
        return bytes(shown) + end + rest if shown else said
