"""Secrets in what is kept and said."""

import re
from collections.abc import Callable


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


_VALUE = (
    r"(?:\\?[\"'])?(?P<secret>(?:(?<=\")(?! )[^\"\\\n]+|(?<=')(?! )[^'\\\n]+|(?<![\"'])[^\s,;&}\]\"'<>\\]+))"
)
"""With the quotes around it, also those of JSON within a string; a quote before a blank ends a quotation."""
_ALREADY = r"(?!\([\w ]+\))"
_START = r"(?:(?<![A-Za-z0-9_-])|(?<=\\[nrt]))"
"""Of a word, also behind JSON's sign of a new line."""
_FORMS = tuple(
    re.compile(form.replace("(?P<secret>", f"(?P<secret>{_ALREADY}"))
    for form in (
        # The password of an address, also one with an @ or a / that should have been written otherwise.
        r"://[^\s:/@'\"]{0,200}:(?!\d{1,5}(?:[/?#\s'\",;)\]]|\Z))(?P<secret>[^\s'\"<>]{1,500})@(?=[\w\[])",
        r"://(?P<secret>[^\s:/@'\"]{16,500})@(?=[\w\[])",
        r"(?<![\w.@:-])[\w.-]{1,100}:(?!\d{1,5}\b)(?P<secret>[^\s:@/'\"]{6,200})@(?=[A-Za-z\[]|\d{1,3}\.\d)",
        # Tokens that are known by their form: GitLab, GitHub, Slack, AWS, Stripe, PyPI, npm, JWT, InfluxDB.
        _START + r"(?P<secret>(?:gl[a-z]{2,5}-|gh[a-z]_|github_pat_|xox[a-z]-|sk[-_](?:live|test|proj)[-_]"
        r"|pypi-|npm_|hf_)[\w.=-]{10,})",
        _START + r"(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b",
        _START + r"(?P<secret>eyJ[\w-]{8,}\.[\w-]{4,}\.?[\w-]*)",
        r"(?<![\w+/=-])(?P<secret>(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{84,88}==)",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----(?P<secret>[^-]+)",
        r"(?P<secret>\$(?:1|5|6|y|2[abxy])\$[\w./$=,]{12,})",
        # What is called one.
        r"(?i)authorization\\?[\"']?\s?[=:]\s?\\?[\"']?(?:(?:basic|bearer|token|digest)\s)?+(?P<secret>[^\s\"',\\]+)",
        rf"(?i){_START}(?:bearer|token|private-token:?)\s(?P<secret>(?=\S*\d)[\w.~+/=-]{{16,}})",
        r"(?i)(?:passw(?:or)?d|passwd|passphrase|passcode|secret|token|psk|(?:api|access|private|secret|auth)[_-]?key"
        r"(?:[_-]?id)?|credentials?|[?&]sig(?:nature)?|[?&,]pass|\bX-Amz-(?:Signature|Credential))"
        r"[\w-]{0,20}(?:\\?[\"'])?[ \t]{0,4}[=:][ \t]{0,4}(?!none\b|null\b)" + _VALUE,
        rf"(?i){_START}--?(?:password|passwd|passphrase|token|secret|psk|api-key)[ \t]+" + _VALUE,
        _START + r"sshpass\s+-p\s*" + _VALUE,
        _START + r"curl\s[^\n]{0,500}?-u\s{0,4}[^\s:]{1,100}:" + _VALUE,
    )
)


def conceal(text: str, instead: Callable[[str], str]) -> str:
    """A text in which `instead` says what stands in the place of each password, token and key."""

    def replaced(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("secret"))
        return f"{match[0][:start]}{instead(match['secret'])}{match[0][end:]}"

    for form in _FORMS:
        text = form.sub(replaced, text)
    return text


def concealed(text: str) -> str:
    """The same with the lengths of secrets: for addresses, errors, and what goes to a terminal."""
    return conceal(text, lambda secret: f"({len(secret)} characters)")
