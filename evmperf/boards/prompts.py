"""What the console of a board with TI's U-Boot and images says, and what it is told: for Labgrid's drivers,
the strategy, LAVA's jobs and device types. A board file says only what differs.
"""

from collections.abc import Mapping, Sequence

UBOOT_PROMPT = "=> "
"""With the space, so that no "=>" in a listing is taken for the prompt."""
AUTOBOOT = "stop autoboot"
"""What is on the console while a key stops the countdown."""

SHELL_PROMPT = r"root@[^:\r\n]+:[^\r\n]*[#] "
"""A regular expression, as the following two."""
_ALONE = r"(?=\Z|[\r\n\x1b]|\[ *\d+\.\d|\[  OK)"
"""After a prompt: nothing, or what somebody else says. Text of its own line tells that a sentence
only looked like a prompt ("Default login: root").
"""
_LINE = r"[\r\n](?:\x1b(?:\[[0-?]*[ -/]*[@-~]|[P\]][^\x07\x1b\r\n]*(?:\x07|\x1b\\)))*"
"""Its begin; systemd 257 and later asks the terminal for its name and size before a login."""
_GETTY = rf"(?:[^\s:\[]+ )?login: (?:{_ALONE}|\S+ \(automatic login\))"
LOGIN_PROMPT = rf"{_LINE}(?:{_GETTY}|[a-z]\w{{0,24}}:/ [$#] {_ALONE})"
"""getty's, with a name that is logged in by itself, or the console of Android."""
INIT_SHELL_PROMPT = rf"{_LINE}[^\s\[]{{0,24}} ?# {_ALONE}"
"""Of the shell that a kernel starts with init=/bin/sh; bash 5.1 and later switches bracketed paste
on before it.
"""


def ending(login: str, shell: str) -> str:
    """What ends a boot where a lab says what login and shell look like: either with nothing of its own line
    behind it, or TI's.
    """
    return rf"(?:{login}){_ALONE}|(?:{shell})(?=\Z)|{LOGIN_PROMPT}"


USERNAME = "root"
SUDO = "sudo -i"
"""What another user types for a shell of root; sudo may ask for that user's password."""
USER_PROMPT = rf"{_LINE}[^\r\n]*\$ (?=\Z)"

BOOT_COMMAND = "boot"
KERNEL_ARGUMENTS_VARIABLE = "optargs"
"""U-Boot's variable whose words join the kernel's command line."""
MEDIA: Mapping[str, Sequence[str]] = {
    "sd": ("setenv mmcdev 1", "setenv bootpart 1:2"),
    "emmc": ("setenv mmcdev 0", "setenv bootpart 0:2"),
}
"""U-Boot commands that choose each medium, before BOOT_COMMAND."""
