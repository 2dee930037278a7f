"""A new board file, begun as a copy of another."""

import re
from pathlib import Path

import yaml

from evmperf.boards import board as boards
from evmperf.boards.board import Board
from evmperf.boards.vocabulary import FEATURES, known_options, sections
from evmperf.model.errors import LabError, UsageError

FILL_IN = "FILL IN"
"""How a value begins that a person must say."""


def general(name: str, title: str) -> dict[str, str]:
    """The section `board` of a board that a person describes; raises UsageError for a wrong name."""
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]*", name):
        raise UsageError(f"a board cannot be called {name!r}: use letters, digits, '-' and '_'")
    return {"name": name, "title": title, "description": f"{FILL_IN}: revision, clock, memory"}


def write(like: Path, folder: Path, name: str, title: str = "") -> Path:
    """Copy a board file, comments included, to `folder`/`name`.yaml with that name for the board; returns the
    file. Raises UsageError for a wrong name or one in use, LabError when the disk does not take the file.
    """
    options = general(name, title or name)
    if taken := [file for file in boards.files().values() if boards.load(file).name == name]:
        raise UsageError(f"{taken[0]} already has a board {name}")
    old = boards.load(like)
    if old.is_virtual:
        raise UsageError(f"{like} is a virtual EVM: copy the file of a real board")
    text = like.read_text(encoding="utf-8")
    for key, value in options.items():
        begin = f"        {key}: {getattr(old.options.board, key)}"
        if begin not in text:
            raise UsageError(f"{like}: its {key} has no line of its own: copy the file by hand")
        text = text.replace(begin, f"        {key}: {scalar(value)}", 1)
    text = text.replace(f"--lg-env {like.name}", f"--lg-env {name}.yaml", 1)
    text = text.replace(old.options.board.title, title or name, 1)
    file = written(folder / f"{name}.yaml", text, "x")
    boards.load(file)
    return file


def written(file: Path, text: str, mode: str, *, private: bool = False) -> Path:
    """Write a board file, a new one where the mode is `x`, for its owner alone where it may hold a
    password. Raises UsageError for a name in use, LabError when the disk does not take it.
    """
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open(mode, encoding="utf-8") as stream:
            if private:
                file.chmod(0o600)
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{file} already exists") from None
    except OSError as error:
        raise LabError(f"{file}: cannot be written: {error.strerror}") from error
    return file


def scalar(text: str) -> str:
    """A text as YAML has it behind a key."""
    return yaml.safe_dump(text, width=1000).removesuffix("\n").removesuffix("\n...")


def beside(board: Board, folder: Path, name: str, title: str = "") -> Path:
    """Write evmperf's options for a lab's own env file, to be filled in, as `folder`/`name`.yaml: the drivers
    that the lab's file does not name are comments. Raises UsageError and LabError as `write`.
    """
    options = general(name, title or name)
    lines = [
        f"# evmperf's options for {board.file_name}, for pytest --lg-env {board.file_name} --board FILE."
    ]
    lines += ["evmperf:", "  board:", *(f"    {key}: {scalar(value)}" for key, value in options.items())]
    lines += ["  # Take the sections that the board has; benchmarks overwrite `scratch`, and nothing else."]
    for section, kind in sections().items():
        keys = [key for key in known_options(kind) if key in _FIRST]
        if section in FEATURES and section not in board.features and keys:
            lines.append(f"  # {section}: {{{', '.join(f'{key}: {FILL_IN}' for key in keys)}}}")
    return written(folder / f"{name}.yaml", "\n".join(lines) + "\n", "x")


_FIRST = ("scratch", "interface", "board_address", "tester_address", "playback", "capture", "device")
"""Options without which a section has no rows."""
