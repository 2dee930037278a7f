"""Secrets in what is kept and said."""

import re
from collections.abc import Callable, Mapping

_SHORT = re.compile(r".{0,5}|[a-z]{0,9}|/.*", re.DOTALL)
"""What is looked for nowhere else: a short value or word stands in other words, a path is none."""
_NAMED = re.compile(
    r"(?i)(?:.*[_.-])?(?:SSHPASS|pass(?:word|wd|phrase)?|token|secret|psk|(?:api|secret|access|private)[_-]?key)"
)
"""Names of options and variables whose values are secrets."""
_learned: set[str] = set()


def learn(document: object) -> None:
    """Know the secrets of a document (a board file, the environment) from now on: values under names of
    secrets, but for the password that is the user's name.
    """
    if isinstance(document, Mapping):
        users = {document.get("user"), document.get("username")}
        for name, value in document.items():
            if not isinstance(value, str):
                learn(value)
            elif _NAMED.fullmatch(str(name)) and value not in users and not _SHORT.fullmatch(value):
                _learned.add(value)
    elif isinstance(document, list):
        for part in document:
            learn(part)


def known() -> list[str]:
    """The secrets that were learned, the longest first."""
    return sorted(_learned, key=len, reverse=True)


def without_known(text: str, instead: Callable[[str], str] | None = None) -> str:
    """A text without the secrets that are known, wherever they stand; their lengths instead by default."""
    for secret in known():
        if secret in text:
            text = text.replace(secret, (instead or _length)(secret))
    return text


def _length(secret: str) -> str:
    return f"({len(secret)} characters)"


class Typed:
    """A secret that was typed on a console, and its echo: a terminal that does not hide it yet repeats it in
    the line where it stands. Both are kept as so many asterisks.
    """

    def __init__(self, secret: bytes) -> None:
        self.asterisks = b"*" * len(secret)
        self._secret = secret
        self._echoed = 0

    def without(self, output: bytes) -> bytes:
        """What the board said next, of the same length; after the end of the line nothing is replaced."""
        line, end, rest = output.partition(b"\n")
        shown = bytearray(line if self._secret else b"")
        for index, byte in enumerate(shown):
            if byte != self._secret[self._echoed]:
                self._echoed = 0
            if byte == self._secret[self._echoed]:
                shown[index] = ord("*")
                self._echoed = (self._echoed + 1) % len(self._secret)
        if end:
            self._secret = b""
        return bytes(shown) + end + rest if shown else output


_VALUE = (
    r"(?:[bfru]{1,2}(?=\\?[\"']))?+(?:\\?[\"']|%22)?(?P<secret>(?:(?<=\\\")(?! )[^\"\\\n]+"
    r"|(?<=\")(?! )(?:[^\"\\\n]|\\.)+|(?<=')(?! )[^'\\\n]+|\[[^\]\n]+\]|(?<![\"'])[^\s,;&}\]\"'<>\\]+))"
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
        # Tokens that are known by their form: GitLab, GitHub, Slack, AWS, Stripe, PyPI, npm, JWT, InfluxDB,
        # Google, SendGrid, Docker, Vault.
        _START + r"(?P<secret>(?:gl[a-z]{2,5}-|gh[a-z]_|[a-z]{3,10}_pat_|xox[a-z]-|sk[-_](?=[\w.=-]*\d)"
        r"(?=\S*[A-Z]|\w{20})|whsec_|AIza|SG\.|hv[sbr]\.|pypi-|npm_|hf_)[\w.=-]{10,})",
        r"hooks\.slack\.com/services/(?P<secret>[\w/]+)",
        _START + r"(?P<secret>(?:AKIA|ASIA)[0-9A-Z]{16})\b",
        _START + r"(?P<secret>eyJ[\w-]{8,}\.[\w-]{4,}\.?[\w-]*)",
        r"(?<![\w+/=-])(?P<secret>(?=[\w-]*\d)(?=[\w-]*[A-Z])[\w-]{84,88}==)",
        r"-{4} ?BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)? ?-{4,5}+(?P<secret>(?:[^-]|-(?!---))+)",
        r"Private-Lines:(?P<secret>(?:[^-]|-(?!MAC))+)",
        r"(?P<secret>\$(?:1|5|6|y|2[abxy])\$[\w./$=,]{12,})",
        # What is called one.
        r"(?i)authorization\\?[\"']?\s?[=:]\s?\\?[\"']?(?:(?:basic|bearer|token|digest)\s)?+(?P<secret>[^\s\"',\\]+)",
        rf"(?i){_START}(?:bearer|token|private-token:?)\s(?P<secret>(?=\S*\d)[\w.~+/=-]{{16,}})",
        r"(?i)(?:passwords?|passphrases?|tokens?|secrets?)[\"']?:[ \t]{0,4}(?:\r?\n|\\n)"
        r"(?P<secret>[ \t]{0,40}-[ \t][^\n\\]{1,200}(?:(?:\n|\\n)[ \t]{0,40}-[ \t][^\n\\]{1,200}){0,99})",
        r"(?i)(?:(?<!no)passw(?:or)?d|passphrase|passcode|secret|token|psk"
        r"|(?:api|access|account|private|secret|auth)[_-]?key(?:[_-]?id)?|credentials?|[?&]sig(?:nature)?|[?&,_]pass|(?:\b|_|(?<=\\[nrt]))pwd(?=\s?[=:]\s?[^/\s])|wep[_-]key"
        r"|\bX-Amz-(?:Signature|Credential))"
        r"[\w-]{0,20}(?:\\?[\"'])?[ \t]{0,4}[=:>][ \t]{0,4}(?!none\b|null\b)" + _VALUE,
        rf"(?i)(?:{_START}|-)cookie:\s?[\w-]{{1,50}}={_VALUE}",
        rf"(?i){_START}--?(?:password|passwd|passphrase|token|secret|psk|api-key)[ \t]+" + _VALUE,
        # What a program is called with.
        _START + r"(?:sshpass|mysql\w*)\s[^\n]{0,200}?(?<=\s)-p\s{0,4}(?!\d{1,5}\b)" + _VALUE,
        _START + r"(?:ipmitool|snmp\w+|openssl)\s[^\n]{0,200}?(?<=\s)-[PkAX]\s+" + _VALUE,
        _START + r"pass:(?P<secret>\S+)",
        _START + r"SSHPASS=" + _VALUE,
        rf"{_START}--(?:proxy-)?user(?:[ \t]+|=)[\"']?[^\s:\"']{{1,100}}:{_VALUE}",
        r"\"auth\\?\":\s?\\?\"(?P<secret>[^\"\\\n]{8,})",
        rf"{_START}(?:nmcli|login|connect)\s[^\n]{{0,200}}?\spassword\s+(?!(?:will|is|was|for)\b){_VALUE}",
        rf"{_START}psk\s+(?=\\?[\"']){_VALUE}",
        rf"{_START}connect\s[^\n]{{0,200}}?\skey\s+\d:{_VALUE}",
        _START + r"echo\s+[\"']?[\w-]{1,50}:(?P<secret>[^\n\"']{1,200}?)[\"']?\s*\|\s*(?:sudo\s+)?chpasswd",
        _START + r"curl\s[^\n]{0,500}?-u\s{0,4}[^\s:]{1,100}:" + _VALUE,
    )
)


def conceal(text: str, instead: Callable[[str], str]) -> str:
    """A text in which `instead` says what stands in the place of each password, token and key."""

    def replaced(match: re.Match[str]) -> str:
        start, end = (place - match.start() for place in match.span("secret"))
        return f"{match[0][:start]}{instead(match['secret'])}{match[0][end:]}"

    text = without_known(text, instead)
    for form in _FORMS:
        text = form.sub(replaced, text)
    return text


def concealed(text: str) -> str:
    """The same with the lengths of secrets: for addresses, errors, and what goes to a terminal."""
    return conceal(text, _length)
