"""Telnet with the COM port control option (RFC 854, RFC 855, RFC 2217), the client's side.

pyserial has a client, too, but a thread of its own reads the socket there and hands over byte by
byte: when it last looked, which bounds the error of a time stamp, cannot be told.
"""

import select
import socket
import time

_SE, _SB, _WILL, _WONT, _DO, _DONT, _IAC = 240, 250, 251, 252, 253, 254, 255
_BINARY, _SUPPRESS_GO_AHEAD, _COM_PORT = 0, 3, 44
_OURS = frozenset({_BINARY, _SUPPRESS_GO_AHEAD, _COM_PORT})
"""Options that both sides shall have; every other is declined."""

_SET_BAUDRATE, _SET_DATASIZE, _SET_PARITY, _SET_STOPSIZE, _SET_CONTROL = 1, 2, 3, 4, 5
_FROM_SERVER = 100
"""What a server adds to a command's number when it answers."""
_NONE, _ONE_STOP, _NO_FLOW_CONTROL = 1, 1, 1

_LARGEST = 4096
"""Bytes of the longest subnegotiation that is kept; a longer one is no RFC 2217."""


class ComPort:
    """The state of one connection: what of the stream is Telnet's, and what to answer."""

    def __init__(self, baud: int) -> None:
        self.speed = 0
        """The baud rate that the server has confirmed, 0 before."""
        self.refused = False
        """Whether the server has said that it does not know the option."""
        self._baud = baud
        self._pending = bytearray()
        self._asked = {(verb, option) for verb in (_DO, _WILL) for option in _OURS}

    def greeting(self) -> bytes:
        """What to send first: the options, and the line's settings (8N1, no flow control)."""
        asked = b"".join(bytes((_IAC, verb, option)) for verb, option in sorted(self._asked))
        return (
            asked
            + _command(_SET_BAUDRATE, self._baud.to_bytes(4, "big"))
            + _command(_SET_DATASIZE, b"\x08")
            + _command(_SET_PARITY, bytes((_NONE,)))
            + _command(_SET_STOPSIZE, bytes((_ONE_STOP,)))
            + _command(_SET_CONTROL, bytes((_NO_FLOW_CONTROL,)))
        )

    def await_speed(self, connection: socket.socket, timeout_s: float) -> bytes:
        """Read until the server confirms the baud rate; returns the board's output. Raises OSError."""
        said = b""
        deadline = time.monotonic() + timeout_s
        while not self.speed:
            left = deadline - time.monotonic()
            if self.refused or left <= 0 or not select.select([connection], [], [], left)[0]:
                raise OSError("it does not speak RFC 2217")
            data = connection.recv(65536)
            if not data:
                raise ConnectionResetError("closed by the console server")
            board, answer = self.take(data)
            said += board
            connection.sendall(answer)
        return said

    def take(self, data: bytes) -> tuple[bytes, bytes]:
        """Bytes from the wire as (what the board said, what to answer the server)."""
        if not self._pending and _IAC not in data:
            return data, b""
        stream = bytes(self._pending) + data
        self._pending.clear()
        board, answer = bytearray(), bytearray()
        at = 0
        while at < len(stream):
            begin = stream.find(_IAC, at)
            if begin < 0:
                board += stream[at:]
                break
            board += stream[at:begin]
            length = self._command_at(stream, begin, board, answer)
            if not length:  # the rest of it has not come yet
                self._pending += stream[begin:]
                break
            at = begin + length
        return bytes(board), bytes(answer)

    def _command_at(self, stream: bytes, at: int, board: bytearray, answer: bytearray) -> int:
        """Carry out the command that begins at `at`; its length, 0 if it is not whole."""
        if at + 1 >= len(stream):
            return 0
        verb = stream[at + 1]
        length = 2
        if verb == _IAC:
            board.append(_IAC)
        elif verb == _SB:
            end = _end(stream, at + 2)
            if end < 0:
                return 0 if len(stream) - at < _LARGEST else len(stream) - at
            self._take_settings(stream[at + 2 : end].replace(b"\xff\xff", b"\xff"))
            length = end + 2 - at
        elif verb in (_WILL, _WONT, _DO, _DONT):
            length = 3 if at + 2 < len(stream) else 0
            if length:
                answer += self._answer(verb, stream[at + 2])
        return length

    def _answer(self, verb: int, option: int) -> bytes:
        """The reply to an offer or a request; none to the reply to ours, or it would not end."""
        if option == _COM_PORT and verb == _DONT:
            self.refused = True
        if verb in (_WONT, _DONT):
            return b""
        reply = _DO if verb == _WILL else _WILL
        if (reply, option) in self._asked:
            self._asked.discard((reply, option))
            return b""
        if option in _OURS:
            return b""  # agreed before
        return bytes((_IAC, _DONT if verb == _WILL else _WONT, option))

    def _take_settings(self, said: bytes) -> None:
        if said[:2] == bytes((_COM_PORT, _SET_BAUDRATE + _FROM_SERVER)) and len(said) >= 6:
            # A server that does not know the port's speed says 0 or leaves ours as it is.
            self.speed = int.from_bytes(said[2:6], "big") or self._baud

    @staticmethod
    def escaped(data: bytes) -> bytes:
        """Bytes for the board as they go over the wire."""
        return data.replace(b"\xff", b"\xff\xff")


def _command(number: int, value: bytes) -> bytes:
    body = bytes((_COM_PORT, number)) + ComPort.escaped(value)
    return bytes((_IAC, _SB)) + body + bytes((_IAC, _SE))


def _end(stream: bytes, at: int) -> int:
    """Where the IAC SE of a subnegotiation is, -1 if it has not come."""
    while (at := stream.find(_IAC, at)) >= 0:
        if at + 1 >= len(stream):
            return -1
        if stream[at + 1] == _SE:
            return at
        at += 2
    return -1
