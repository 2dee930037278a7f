"""What a board says beside a tool's figures: printed twice, so that damage shows."""

from __future__ import annotations

from evmperf.model.errors import RefusedOutput


def command(inner: str, file: str) -> str:
    """Shell text that puts what `inner` prints twice into `$OUT/FILE`, and always succeeds."""
    return f'a=$({inner}) || :; printf "%s\\n%s\\n" "$a" "$a" >"$OUT/{file}"'


def read(text: str) -> str:
    """What was printed twice, "" for no file; raises RefusedOutput where it differs."""
    half = len(text) // 2
    if text[:half] != text[half:]:
        raise RefusedOutput("what the board says beside the figures is damaged", text)
    return text[:half]
