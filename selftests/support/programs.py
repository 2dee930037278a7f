"""Programs in processes of their own that run to their end."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect

from evmperf.measure.hostload import slowness

REPOSITORY = Path(__file__).parents[2]


def run(*words, cwd=REPOSITORY, environment=None, timeout_s=600.0, check=False, **variables):
    """Run a program that has nothing to read and whose output is text, in an environment, this process's by
    default, with these variables more; `timeout_s` is on an idle host.
    """
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env={**(os.environ if environment is None else environment), **variables},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s * slowness(),
        check=check,
    )


def evmperf(*words, **more):
    """Run `evmperf`; `more` is for `run`."""
    return run(sys.executable, "-m", "evmperf", *words, **more)


def pytest(*words, **more):
    """Run pytest."""
    return run(sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words, **more)


def at_terminal(*words, replies=(), timeout_s=300.0):
    """Run `evmperf` on a terminal of 160 columns, where a person replies to prompts (regular expressions)
    with lines; its exit status and the text that was shown. `timeout_s` is on an idle host, for each reply.
    """
    command = ["-m", "evmperf", *map(str, words)]
    limit_s, size = timeout_s * slowness(), (60, 160)
    person = pexpect.spawn(sys.executable, command, encoding="utf-8", timeout=limit_s, dimensions=size)
    shown = ""
    for prompt, reply in (*replies, (pexpect.EOF, "")):
        person.expect(prompt)
        shown += person.before
        if reply:
            person.sendline(reply)
    person.close()
    return person.exitstatus, re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def start(log, *words, environment=None, **variables):
    """Start a program whose output goes to the end of a file."""
    with log.open("ab") as file:
        return subprocess.Popen(
            # Started in the background of a script, we inherit an ignored Ctrl-C.
            ["env", "--default-signal=INT", *map(str, words)],
            cwd=REPOSITORY,
            env={**(os.environ if environment is None else environment), **variables},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            close_fds=False,  # it may share a board of ours
        )


def end(process):
    """Kill it if it still runs."""
    if process.poll() is None:
        process.kill()
    process.wait()
