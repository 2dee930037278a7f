"""A board's facts beside a tool's figures, printed twice to detect damage."""

from evmperf.model.errors import RefusedOutput


def command(inner: str, file: str) -> str:
    """Shell text that writes the output of `inner` twice to `$OUT/FILE`; always succeeds."""
    return f'a=$({inner}) || :; printf "%s\\n%s\\n" "$a" "$a" >"$OUT/{file}"'


def read(text: str) -> str:
    """The text printed twice, "" without a file; raises RefusedOutput if the copies differ."""
    half = len(text) // 2
    if text[:half] != text[half:]:
        raise RefusedOutput("what the board says beside the figures is damaged", text)
    return text[:half]
