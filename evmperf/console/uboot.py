"""U-Boot's environment, read so that words get onto the kernel's command line.

U-Boot passes the variable `bootargs`. TI's scripts set it in the boot command from others, with
`${optargs}` for the user's words; but on some boards a script sets `optargs` itself, right before,
and what was set at the prompt is lost (AM64x, J721E, J7200, J721S2: `args_all`).
"""

import re
from collections.abc import Mapping

_LONGEST = 900
"""Characters of a command that every U-Boot takes (CONFIG_SYS_CBSIZE is 1024 on TI's boards)."""


def parse(printed: str) -> dict[str, str]:
    """The variables that `printenv` printed; a line without a name continues the value before it."""
    variables: dict[str, str] = {}
    name = ""
    for line in printed.replace("\r", "").split("\n"):
        if match := re.match(r"([A-Za-z_][\w.,#+-]*)=(.*)", line):
            name = match[1]
            variables[name] = match[2]
        elif name and line and not line.startswith("Environment size:"):
            variables[name] += f"\n{line}"
    return variables


def overwriting(environment: Mapping[str, str], variable: str) -> list[str]:
    """Names of the scripts that set `variable` themselves."""
    pattern = _setting(variable)
    return [name for name, value in environment.items() if pattern.search(value)]


def arguments_commands(environment: Mapping[str, str], variable: str, arguments: str) -> list[str]:
    """U-Boot commands after which the boot command passes `arguments` in `variable` to the kernel: scripts
    that set it, or `bootargs` where none reads it, are extended.
    """
    commands = [f"setenv {variable} '{arguments}'"]
    if not arguments:
        return commands
    target = variable
    if not any(f"${{{variable}}}" in value for value in environment.values()):
        target = "bootargs"
    for name in overwriting(environment, target):
        value = _setting(target).sub(rf"\g<0> {arguments}", environment[name])
        command = f"setenv {name} '{value}'"
        # A value with quotes or lines of its own cannot be typed; that it was needed shows later.
        if "'" not in value and "\n" not in value and len(command) <= _LONGEST:
            commands.append(command)
    return commands


def _setting(variable: str) -> re.Pattern[str]:
    """`setenv VARIABLE words`, up to the end of that command."""
    return re.compile(rf"\b(?:env set|setenv) {re.escape(variable)}\b[^;\n&|]*")
