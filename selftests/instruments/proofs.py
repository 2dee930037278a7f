"""Does `evmperf why --prove` find what is set on a virtual EVM, and leave the board as it was when ended?

Two runs of a case are measured by pytest, the second with the setting; then `why` is asked for a proof.
Settings are those of proofs.yaml, or of another `--faults FILE`: of somebody, say, who does not know what
evmperf looks for. With `--interrupt N` the proof is ended N times, each time later than before, by SIGINT,
SIGTERM and SIGKILL in turn: the board must be off within four minutes, and have its own setting when it is on
again.
"""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec
from evmperf_virtual.client import LabClient

from evmperf.measure.runs import spool
from evmperf.model.errors import LabError
from evmperf.model.figures import figures
from selftests.instruments import command
from selftests.support import programs, virtualbench

_OFF_S = 240.0
"""A round whose proof was killed goes on to its end."""
_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


class Setting(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is set, the case that it costs, the shell text that prints what the board has, and what an answer
    must name.
    """

    text: str
    benchmark: str
    case: str
    shown: str
    cause: str = ""


class Proof:
    """A board on which `setting` was measured, and the question to it."""

    def __init__(self, setting: Setting, lab: LabClient, folder: Path) -> None:
        self._setting, self._lab, self._folder = setting, lab, folder
        self.file = virtualbench.board_file(lab, "virtual", folder)
        keyword = " and ".join(filter(None, (setting.benchmark, setting.case)))
        for run, more in (("good", []), ("bad", [f"--vary=run:{setting.text}"])):
            words = [f"--lg-env={self.file}", "-k", keyword, "--profile=quick", f"--run-id={run}", *more]
            done = programs.pytest(*words, cwd=folder)
            if done.returncode:
                raise LabError(f"{run}: {done.stdout}{done.stderr}")
        good, bad = (figures(spool.read_results(folder / "results" / run)) for run in ("good", "bad"))
        self.changes = ", ".join(
            f"{key.metric} {good[key].mean:.4g} to {bad[key].mean:.4g}" for key in good if key in bad
        )
        """What the setting cost."""
        self._agreed = folder / "agreed"
        self._agreed.write_text("y\n")  # processes may be started

    def asked(self, budget: str) -> subprocess.Popen[str]:
        """Start the question."""
        words = ["why", "bad", f"{self._setting.benchmark} {self._setting.case}".strip(), "--against=good"]
        words += [f"--prove={budget}", f"--lg-env={self.file}"]
        return subprocess.Popen(
            [sys.executable, "-m", "evmperf", *words],
            cwd=self._folder,
            text=True,
            stdin=self._agreed.open(),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def shown(self) -> str:
        """What the board has, which is switched on and off for it."""
        with virtualbench.reached(self.file) as bench:
            return bench.shell().run(self._setting.shown, 20).text.strip()

    def interrupted(self, number: int, after_s: float) -> str:
        """End a question after so many seconds; why the board is not as it was, "" if it is."""
        process = self.asked("30m")
        time.sleep(after_s)
        if process.poll() is not None:
            return f"it had ended: {process.communicate()[0]}"
        process.send_signal(_SIGNALS[number % len(_SIGNALS)])
        deadline = time.monotonic() + _OFF_S
        try:
            process.communicate(timeout=_OFF_S)
        except subprocess.TimeoutExpired:
            process.kill()
            return f"it ran on for {_OFF_S:.0f} s"
        while self._lab.status().power:
            if time.monotonic() > deadline:
                return "the board is on"
            time.sleep(0.5)
        return ""


def main(words: Sequence[str] | None = None) -> None:
    """Print a line a setting, or a line an interruption."""
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("--budget", default="30m", metavar="TIME", help="time of a proof (default: 30m)")
    parser.add_argument("--interrupt", type=int, default=0, metavar="N", help="end each proof N times")
    own = Path(__file__).with_name("proofs.yaml")
    parser.add_argument("--faults", type=Path, default=own, metavar="FILE", help="settings")
    parser.add_argument("names", nargs="*", metavar="NAME", help="names or parts of names; default: all")
    given = parser.parse_args(words)
    settings = msgspec.yaml.decode(given.faults.read_bytes(), type=dict[str, Setting])
    right = total = 0
    for name in command.named(parser, given.names, settings):
        with tempfile.TemporaryDirectory() as folder, virtualbench.running("virtual", "proofs") as lab:
            try:
                proof = Proof(settings[name], lab, Path(folder))
            except LabError as error:
                print(name, f"cannot be measured: {error}", sep="  ", flush=True)
                continue
            if not given.interrupt:
                said = proof.asked(given.budget).communicate()[0].strip().splitlines() or [""]
                right += any(text.endswith("this is it") for text in said[-2:])
                print(f"{name}: {settings[name].cause} ({proof.changes})", *said[-8:], sep="\n  ", flush=True)
                total += 1
                continue
            before = proof.shown()
            for number, after_s in zip(range(given.interrupt), itertools.count(2.0, 3.1)):
                said = proof.interrupted(number, after_s)
                after = proof.shown()
                fine = not said and after == before
                how = f"{_SIGNALS[number % 3].name} after {after_s:.1f} s"
                print(name, how, said or after, "right" if fine else "WRONG", sep="  ", flush=True)
                right, total = right + fine, total + 1
    print(f"{right} of {total} {'boards were as before' if given.interrupt else 'causes were proven'}")


if __name__ == "__main__":
    main()
