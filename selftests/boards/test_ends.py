"""Ends of a boot in a board file and in `--end`."""

from __future__ import annotations

from pathlib import Path

import pytest

from evmperf.boards import board as boards
from evmperf.boards import ends
from evmperf.model.errors import UsageError


@pytest.fixture
def board_with(tmp_path: Path):
    """A function that gives the board whose file has these ends."""

    def load(text: str) -> boards.Board:
        source = (boards.ENV_DIR / "virtual.yaml").read_text()
        file = tmp_path / "mine.yaml"
        stated = f"        medium: virtio\n        ends:\n          {text}\n"
        file.write_text(source.replace("        medium: virtio\n", stated, 1))
        return ends.checked(boards.load(file))

    return load


def test_words_of_the_command_line_join_those_of_the_file(board_with):
    words = ("net=ping:192.168.100.2", "web=http://h:81/x?y", "ssh=tcp:[::1]:22", "gui=unit:weston@1.service")
    own = "app: {line: '^ready', within_s: 9}\n          old: {tcp: 'h:1', interval_ms: 50}"
    board = ends.checked(board_with(own), words)
    stated = board.options.boot.ends
    assert [*stated] == ["app", "old", "net", "web", "ssh", "gui"]
    assert stated["app"].within_s == 9
    assert [ends.address(stated[name]) for name in ("web", "ssh")] == [("h", 81), ("::1", 22)]
    assert ends.described(stated)["web"] == "http http://h:81/x?y"
    intervals = {name: end.interval_ms for name, end in ends.of_board(board).items()}
    assert intervals == {"app": 20, "old": 50, "net": 200, "web": 200, "ssh": 200, "gui": 20}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("app: {line: 'ready('}", "mine.yaml: boot.ends.app: 'ready(' is no regular expression: missing )"),
        ("app: {}", "mine.yaml: boot.ends.app: it must have"),
        ("app: {line: x, tcp: 'h:1'}", "not line and tcp"),
        ("App: {line: x}", "its name must have small letters"),
        ("app: {lines: x}", "options.boot.ends: Object contains unknown field `lines`"),
        ("app: {line: x, within_s: 0}", "options.boot.ends: Expected `int` >= 1"),
    ],
)
def test_an_end_that_cannot_come_is_refused_with_its_file(board_with, text, said):
    with pytest.raises(UsageError) as refused:
        board_with(text)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("app", "is no end of a boot: --end takes NAME=line:REGEX"),
        ("app=line:(", "'(' is no regular expression"),
        ("app=ping:fe80::1", "Expected 4 octets"),
        ("app=tcp:h", "h is not HOST:PORT"),
        ("app=tcp:h:99999", "h:99999 is not HOST:PORT"),
        ("app=unit:a b; reboot", "are no names of systemd's"),
    ],
)
def test_a_wrong_word_is_refused(board_with, word, said):
    board = board_with("other: {line: x}")
    with pytest.raises(UsageError) as refused:
        ends.checked(board, [word])
    assert str(refused.value).startswith(f"--end={word}: ")
    assert said in str(refused.value)


def test_a_url_with_a_password_is_refused_and_not_shown(board_with):
    with pytest.raises(UsageError, match="without a user") as refused:
        ends.checked(board_with("other: {line: x}"), ["app=http://bob:opensesame@h/"])
    assert "opensesame" not in str(refused.value)
