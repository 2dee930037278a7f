"""A board's facts beside a tool's figures, printed twice to detect damage."""

from evmperf.tools._checks import refuse


def command(inner: str, file: str) -> str:
    """Shell text that writes the output of `inner` twice to `$OUT/FILE`; always succeeds."""
    return f'a=$({inner}) || :; printf "%s\\n%s\\n" "$a" "$a" >"$OUT/{file}"'


def read(text: str) -> str:
    """The text printed twice, "" without a file; raises RefusedOutput if the copies differ."""
    half = len(text) // 2
    refuse(text[:half] != text[half:], "the board's facts beside the figures are damaged", text)
    return text[:half]
