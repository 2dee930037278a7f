"""Names of hosts, addresses, serial numbers and keys replaced in what goes out of a lab."""

import functools
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from evmperf.model.concealing import conceal

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_PUBLIC = (
    r"(?:[\w-]+\.)*(?:(?:kernel|debian|yoctoproject|openembedded|freedesktop|gnu|infradead|beagleboard|archlinux"
    r"|arago-project)\.org|(?:ti|armbian|ubuntu|github|redhat)\.com|(?:readthedocs|github|systemd|bbb)\.io|linux\.dev"
    r"|(?:denx|swb)\.de|busybox\.net|linux\.it)\b"
)
"""Hosts that programs name to everybody."""
_UNIT = r"(?![0-9a-f]+(?:\b|port|_))(?<!getty@)(?<!modprobe@)(?<!fsck@)"
"""What is behind an @ is no address of a device tree, and no name of a unit of systemd."""
_GENERIC = r"(?!(?:oe-|local)?host(?:name)?\b)"
_PATTERNS = {
    "MAC": r"(?i)\b(?:[0-9a-f]{2}[:-]){5}[0-9a-f]{2}\b",
    "machine": r"(?i)(?<=machine-id|machine id|machine_id)(?:\\?[\"'])?\s{0,4}[:=]?\s{0,4}(?:\\?[\"'])?"
    r"[0-9a-f]{32}\b",
    "e-mail": r"(?<![\w.+/:@-])[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,5}"
    r"(?!service|socket|mount|target|device|timer|slice|scope|path|swap|automount)[A-Za-z]{2,10}(?![\w@.-])",
    "UUID": r"(?i)\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<=PARTUUID=)[\w-]+",
    "serial": r"(?i)(?:(?<=serial#)|(?<=serial number)|(?<=serialnumber)|(?<=serialno)|(?<=serial_number))"
    r"\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?[\w-]{3,}(?![\w-]*[.:]\w)"
    # A serial port is called serial, too: a number has digits, and is no name of a port or of its driver.
    r"|(?:(?<=\bserial)|(?<=\bcid))\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?(?!tty)(?=[\w-]*\d)[\w-]{4,}(?![\w/-])",
    "address": rf"(?<![\w.])(?<!version )(?<!version: )(?<!utils\) )(?:{_OCTET}\.){{3}}{_OCTET}"
    r"(?![\w]|\.\d|-[a-z])"
    r"|(?<![\w:.])(?=[0-9a-fA-F:]{0,39}(?:::|(?::[0-9a-fA-F]{1,4}){7}))[0-9a-fA-F:]{3,39}(?![\w:])",
    "host": rf"(?<=://)(?!{_PUBLIC})[\w.-]+|(?<=[\w)]@)(?=[A-Za-z]){_UNIT}{_GENERIC}(?!{_PUBLIC})[\w.-]+\b(?!=)"
    r"|(?<=/home/)(?!root\b)[\w.-]+",
}
"""By kind, in the order in which they are replaced, after passwords and tokens. Releases such as 11.02.08.02
are no addresses.
"""
_SECRET = re.compile(
    r"(?i)(?:.*[_.-])?(?:serial|cid|uuid|mac|token|password|secret|host(?:name)?|user)(?:[_.-].*)?"
)
"""Names of facts whose values do not go out."""
_LEAST = 6
"""Characters of a secret that is looked for everywhere."""


class Hiding:
    """Replaces what names a lab, a machine or a person; the same each time by the same word."""

    def __init__(self, hosts: Iterable[str]) -> None:
        self.replacements: dict[str, str] = {}
        """What was found, and what stands there instead."""
        self._bare: dict[str, str] = {}
        """The same where it stands without the word that tells what it is."""
        names = [re.escape(name) for name in sorted(set(hosts), key=len, reverse=True) if len(name) > 1]
        self._hosts = re.compile(rf"(?<![\w-])(?:{'|'.join(names)})(?![\w-])") if names else None

    def text(self, text: str) -> str:
        """A text without."""
        text = conceal(text, functools.partial(self._instead, "key"))
        for kind, pattern in _PATTERNS.items():
            text = re.sub(pattern, functools.partial(self._instead, kind), text)
        for bare, word in self._bare.items():
            alone = rf"(?<![A-Za-z0-9]){re.escape(bare)}(?![A-Za-z0-9])"
            text = re.sub(alone, word.replace("\\", r"\\"), text)
        return self._hosts.sub(functools.partial(self._instead, "host"), text) if self._hosts else text

    def value(self, value: Any) -> Any:
        """A JSON value without; keys stay, as programs read them."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, Mapping):
            return {
                key: self._instead(str(key), part)
                if isinstance(part, str) and part and _SECRET.fullmatch(str(key))
                else self.value(part)
                for key, part in value.items()
            }
        return [self.value(part) for part in value] if isinstance(value, list | tuple) else value

    def _instead(self, kind: str, match: re.Match[str] | str) -> str:
        secret = match if isinstance(match, str) else match[0]
        if secret in self.replacements.values() or (kind == "address" and not _is_secret(secret)):
            return secret
        same = sum(word.startswith(f"({kind} ") for word in self.replacements.values())
        word = self.replacements.setdefault(secret, f"({kind} {same + 1})")
        if len(bare := secret.strip(" \t:=\\\"'")) >= _LEAST:
            self._bare[bare] = word
        return word


def _is_secret(text: str) -> bool:
    """Whether it is the address of one machine: no loopback, mask, or address of nobody or everybody."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    everybody = address.is_loopback or address.is_unspecified or address.is_multicast
    return not everybody and not text.startswith("255.")
