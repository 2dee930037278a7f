"""A board made of threads: U-Boot's and Linux's dialogue over TCP, and a power switch over HTTP."""

import contextlib
import re
import shlex
import shutil
import socket
import subprocess
import tempfile
import threading
import time

from evmperf.model.places import STEP_FOLDER
from selftests.support import web
from selftests.support.texts import BOOT, OOPS, PANIC, RESET_WITHOUT_SPL

_KERNEL = BOOT.index(b"## Flattened")
_USERLAND = BOOT.index(b"[  OK  ]")
_LOGIN = BOOT.index(b"virtual-evm login: ")

FALCON = (
    b"\r\nU-Boot SPL 2026.01 (Jan 12 2026 - 10:21:33 +0000)\r\nTrying to boot from MMC2\r\n"
    b"NOTICE:  BL31: v2.13.0(release)\r\n" + BOOT[BOOT.index(b"[    0.000000] Booting Linux") : _LOGIN]
)
"""A boot without U-Boot."""
_ECHO = re.compile(r"echo '(.{4})''(.+?)'$")
_RUN = re.compile(r"MARKER='(.{4})''(.+?)' run (.+)$", re.DOTALL)
_UBOOT = re.compile(r"""echo '(.{4})''(.+?)'; (.*); echo "\$\?"; echo '.*';$""")


class FakeBoard:
    """Off until its switch says on. `boots` are how the next boots go, then they go well:

    mute: U-Boot says its name and no more. falcon: SPL starts Linux. panic, oops, reset: while
    Linux boots. stuck: no login, or only after `go_on`. `switched` is all that the power switch has done.
    """

    def __init__(self):
        self.boots = []
        self.password = None
        self.echoes = False  # what is typed as a password, as a terminal that does not hide it yet
        self.prompt = "root@virtual-evm:~# "
        self.uboot_prompt = "=> "
        self.typed = []
        self.switched = []
        self.ignores_ctrl_c = False
        self.away_s = 0.0
        self.pace_s = 0.0  # between what is printed while it boots
        self.environment = None  # of its shell; None: this machine's
        self._state = "off"
        self._lock = threading.RLock()
        self._line = ""
        self._begun = ""
        self._client = None
        self._ended = threading.Event()
        self.disk = tempfile.mkdtemp(prefix="fakeboard-")
        self._listen(0)
        self.port = self._server.getsockname()[1]

    def close(self):
        """No console server any more."""
        self._ended.set()
        self.lose_console(None)
        shutil.rmtree(self.disk, ignore_errors=True)

    def lose_console(self, away_s):
        """Cut the connection; the console server is back after so many seconds, None for never."""
        with contextlib.suppress(OSError):
            self._server.shutdown(socket.SHUT_RDWR)  # a plain close leaves `accept` listening
        self._server.close()
        self._hang_up()
        if away_s is not None:
            threading.Timer(away_s, self._listen, [self.port]).start()

    @property
    def is_on(self):
        return self._state != "off"

    def switch(self, on):
        """What the power switch does."""
        self.switched.append(on)
        with self._lock:
            self._line = self._begun = ""
            if not on:
                self._state = "off"
                return
            self.going = self.boots.pop(0) if self.boots else "well"
            if self.going == "falcon":
                self._state = "login"
                threading.Thread(target=self._start_without_uboot, daemon=True).start()
                return
            self.say(BOOT[: BOOT.index(b"Hit any")])
            self._state = "dead"
            if self.going != "mute":
                self._state = "autoboot"
                self.say("Hit any key to stop autoboot:  2 ")

    def _start_without_uboot(self):
        while not (self._client or self._ended.is_set()):  # who has just connected is served by a thread
            time.sleep(0.01)
        self.say(FALCON)
        time.sleep(0.2)
        self.say(BOOT[_LOGIN:])

    def say(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        if self._client:
            with contextlib.suppress(OSError):
                self._client.sendall(data)

    def _listen(self, port):
        if self._ended.is_set():
            return
        self._server = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._serve, args=[self._server], daemon=True).start()

    def _hang_up(self):
        client, self._client = self._client, None
        if client:
            with contextlib.suppress(OSError):
                client.shutdown(socket.SHUT_RDWR)
            client.close()

    def _serve(self, server):
        with contextlib.suppress(OSError):
            while True:
                client, _ = server.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                self._client = client
                with contextlib.suppress(OSError):
                    while data := client.recv(4096):
                        for character in data.decode():
                            with self._lock:
                                self._take(character)

    def _take(self, character):
        if self._state == "autoboot":
            self._state = "uboot"
            self.say(f"\r\n{self.uboot_prompt}")
        elif character == "\x03":
            self._ctrl_c()
        elif character != "\n":
            self._line += character
        else:
            line, self._line = self._line, ""
            self.typed.append(line)
            if self._state in ("uboot", "shell"):
                self.say(f"{line}\r\n")
            if handler := getattr(self, f"_in_{self._state}", None):
                handler(line)

    def _ctrl_c(self):
        self._line = self._begun = ""
        if not self.ignores_ctrl_c:
            self._state = self._state.removeprefix("hung in ")
        if self._state in ("uboot", "shell"):
            self.say(f"^C\r\n{self._prompt_now()}")

    def _prompt_now(self):
        return self.uboot_prompt if self._state == "uboot" else self.prompt

    def _in_uboot(self, line):
        if line == "boot":
            self._boot()
        elif line == "reset":
            self.switch(True)
        elif found := _UBOOT.match(line):
            marker = found[1] + found[2]
            if found[3] == "hang":
                self._state = "hung in uboot"
            elif found[3] == "reset":
                self.say(RESET_WITHOUT_SPL)
                self._state = "dead"
            elif found[3] == "garble":
                self.say("\r\n=> ")
            elif found[3] == "lose":
                self.lose_console(self.away_s)
            else:
                status, text = (1, "no card present") if found[3] == "fail" else (0, "fine")
                self.say(f"{marker}\r\n{text}\r\n{status}\r\n{marker}\r\n=> ")
        else:
            found = _ECHO.match(line)
            self.say((f"{found[1]}{found[2]}\r\n" if found else "") + self.uboot_prompt)

    def _boot(self):
        self._state = "dead"
        given = re.findall(r"setenv optargs '(.*?)'", "\n".join(self.typed))[-1:]
        line = f"[    0.000000] Kernel command line: console=ttyS2 {' '.join(given)}\r\n"
        self.say(BOOT[_KERNEL:_USERLAND] + line.encode())
        self._ended.wait(self.pace_s)
        disaster = {"panic": PANIC, "oops": OOPS, "reset": RESET_WITHOUT_SPL}.get(self.going)
        if disaster or self.going == "stuck":
            self.say(disaster or b"A start job is running\r\n")
            return
        self._come_up()

    def go_on(self):
        """Let a stuck boot come to its end."""
        with self._lock:
            if self.is_on and self.going == "stuck":
                self._come_up()

    def _come_up(self):
        self.say(BOOT[_USERLAND:_LOGIN])
        self._ended.wait(self.pace_s)
        if any("init=" in line for line in self.typed[-3:]):
            self._state = "shell"
            self.say("sh: no job control\r\n~ # ")
        else:
            self._state = "login"
            self.say(BOOT[_LOGIN:])

    def _in_login(self, line):
        self.say(f"{line}\r\n")
        if not line:
            self.say("\r\nvirtual-evm login: ")
        elif self.password is None:
            self._log_in()
        else:
            self._state = "password"
            self.say("Password: ")

    def _in_password(self, line):
        for character in f"{line}\r\n" if self.echoes else "":
            self.say(character)
        if line == self.password:
            self._log_in()
        else:
            self._state = "login"
            self.say("\r\n\r\nLogin incorrect\r\nvirtual-evm login: ")

    def _log_in(self):
        self._state = "shell"
        self.say(f"\r\n{self.prompt}")

    def _in_shell(self, line):
        line = self._begun + line
        try:
            shlex.split(line)
            self._begun = ""
        except ValueError:
            self._begun = f"{line}\n"  # a quoted text goes on in the next line
            return
        if line == "reboot":
            self.say("The system is going down for reboot NOW!\r\n")
            self.switch(True)
        elif found := _RUN.match(line):
            self._run(found[1] + found[2], found[3])
        elif found := _ECHO.search(line):
            self.say(f"{found[1]}{found[2]}\r\n{self.prompt}")
        else:
            self.say(self.prompt)

    def _run(self, marker, quoted):
        self.say(marker)
        if quoted == "hang":
            self._state = "hung in shell"
        elif quoted == "lose":
            self.say("half a line")
            self.lose_console(self.away_s)
        elif quoted in ("panic", "reset"):
            self.say({"panic": PANIC, "reset": RESET_WITHOUT_SPL}[quoted])
            self._state = "dead"
        else:
            # Boards do not share a file system, even where they are all made of this machine.
            quoted = quoted.replace(STEP_FOLDER, f"{self.disk}/step")
            done = subprocess.run(
                ["sh", "-c", f"sh -c {quoted}"],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                check=False,
                env=self.environment,
            )
            self.say(done.stdout.replace(b"\n", b"\r\n"))
            self.say(f"{marker} {done.returncode}\r\n{self.prompt}")


class FakeSwitch:
    """A power switch of Labgrid's model `rest`; `broken` is its excuse when it refuses.

    While `answering` is not set it takes connections and says nothing.
    """

    def __init__(self, board):
        self.board = board
        self.broken = None
        self.answering = threading.Event()
        self.answering.set()
        switch = self

        class Handler(web.Handler):
            def do_PUT(self):  # the library's name
                on = self.rfile.read(int(self.headers["Content-Length"])) == b"1"
                if not switch.broken:
                    switch.board.switch(on)
                self._answer("")

            def do_GET(self):
                self._answer("1" if switch.board.is_on else "0")

            def _answer(self, text):
                switch.answering.wait(30)
                self.say(500 if switch.broken else 200, (switch.broken or text).encode())

        self._serving = contextlib.ExitStack()
        self.port = self._serving.enter_context(web.serving(Handler)).server_port

    def close(self):
        """No power switch any more."""
        self.answering.set()
        self._serving.close()
