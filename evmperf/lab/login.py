"""The dialogue of a login on a serial console, up to a shell of root: for measurements and for the desk."""

from collections.abc import Callable
from typing import Literal

from evmperf.boards import prompts

Prompt = Literal["root", "user", "login", "password", "refusal", "silence", "end"]
"""What a console comes to: `user` is another user's shell, `end` that of the time for all of it."""
_NAMES, _PASSWORDS = 3, 6


class LoginStopped(Exception):
    """Nothing that could be typed helps at `prompt`, after so many `names` and `passwords`."""

    def __init__(self, prompt: Prompt, names: int, passwords: int) -> None:
        self.prompt = prompt
        self.names = names
        self.passwords = passwords
        super().__init__(prompt)


def log_in(ask: Callable[[str | None, bool], Prompt], user: str, password: str | None) -> None:
    """Log in, through sudo where a shell is not root's; raises LoginStopped.

    `ask` types a line, or nothing, and returns what the console then comes to; True is for a secret.
    """
    names = passwords = sudos = 0
    prompt = ask("", False)
    while prompt != "root":
        # The first name may go to a prompt that came before the empty line.
        if prompt == "login" and names < _NAMES:
            names += 1
            prompt = ask(user, False)
        elif prompt == "password" and password is not None and passwords < _PASSWORDS:
            passwords += 1
            prompt = ask(password, True)
        elif prompt == "user" and not sudos:
            sudos += 1
            prompt = ask(prompts.SUDO, False)
        elif prompt == "silence":
            # A getty that starts anew forgets what it was told; an empty line brings it back.
            prompt = ask(None if passwords else "", False)
        else:
            raise LoginStopped(prompt, names, passwords)
