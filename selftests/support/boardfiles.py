"""Boards that only a test knows, and what their files say."""

from evmperf.boards.board import Board

GENERAL = {"name": "fake-evm", "title": "Fake EVM", "description": "one", "profile": "quick"}
"""What every board file says of the board itself."""


def fake_board(file, *features, **options):
    """A board with these features and options; what every file must say is there already."""
    said = {"board": GENERAL, "boot": {"medium": "sd"}, **options}
    return Board(file, frozenset(features), said)


def console_and_power(serial, power, speed=10_000_000):
    """The resources of a board whose console and whose switch are at these ports of this machine."""
    switch = f"http://127.0.0.1:{power}/power/{{index}}"
    return {
        "NetworkSerialPort": {"host": "127.0.0.1", "port": serial, "protocol": "raw", "speed": speed},
        "NetworkPowerPort": {"model": "rest", "host": switch, "index": "0"},
    }
