"""Every documented command line runs, from the base wheel, in a folder that has only results and what
earlier lines of the page wrote. walk.yaml has what names stand for, and the exceptions with their reasons.
"""

import contextlib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import yaml

from evmperf.boards.console.record import POWER_ON, History
from evmperf.commands.cli import main
from evmperf.model.exits import ExitStatus
from selftests.support import programs, runs
from selftests.support.wheel import ROOT

WALK = yaml.safe_load(Path(__file__).with_name("walk.yaml").read_text())
COMMANDS = [
    name
    for group in json.loads((ROOT / "evmperf/commands/cli/commands.json").read_text()).values()
    for name in group
]
CONSOLE = ROOT / "selftests/data/consoles/ok-sysvinit.txt"
CHECKOUT = Path(sys.executable).parent
"""The programs of the checkout, with the virtual boards that the wheel has not."""
LAB = """
targets:
  main:
    resources: {RawSerialPort: {port: /dev/ttyUSB0}}
    drivers:
      ManualPowerDriver: {name: board}
      SerialDriver: {}
      ShellDriver: {prompt: "# ", login_prompt: x, username: y}
"""
"""An env file of a lab's own."""
WRONG = re.compile(r"Traceback|mistake in evmperf|^usage: ", re.MULTILINE)

PAGES = ("README.md", *sorted(str(page.relative_to(ROOT)) for page in (ROOT / "docs").glob("*.md")))

_PROGRAMS = r"(?:evmperf|pytest|make|git|pip|python|labgrid-client|export)"
_LINE = re.compile(rf"(?:[A-Z_]+=\S+ )*{_PROGRAMS} \S.*|evmperf")
_EXAMPLE = re.compile(r"(?:[A-Z_]+=\S+ )*evmperf ([\w-]+)( .*)?")
_INLINE = re.compile(r"`((?:evmperf|pytest) [^`>\n]+)`")


class Documented(NamedTuple):
    """A command line, and where it stands: a page, or the command whose help shows it."""

    where: str
    line: int
    text: str


def blocks(page: str) -> Iterator[Documented]:
    """The command lines of a page's indented and fenced blocks, continued lines joined."""
    fenced, begun, above = False, "", ""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif begun or fenced or (line.startswith("    ") and (not above or above.startswith("    "))):
            text = begun + line.strip()
            begun = text.removesuffix("\\") if text.endswith("\\") else ""
            if not begun and _LINE.fullmatch(text):
                yield Documented(page, number, text)
        above = line.strip() and line


def shown_by(command: str, text: str) -> Iterator[Documented]:
    """The command lines among the words of a command's help; what a line does stands two spaces after it."""
    joined = re.sub(r"\\\n\s*", "", text.partition("\n\n")[2])
    for number, line in enumerate(joined.splitlines(), 1):
        shown = re.split(r"\s{2,}", line.strip())[0]
        if (example := _EXAMPLE.fullmatch(shown)) and example[1] == command:
            yield Documented(f"{command} --help", number, shown)


def inline(page: str) -> Iterator[Documented]:
    """The command lines within a page's sentences."""
    for number, line in enumerate((ROOT / page).read_text().splitlines(), 1):
        yield from (Documented(page, number, text) for text in _INLINE.findall(line))


@pytest.fixture(scope="session")
def measured(tmp_path_factory):
    """What a user has before: results of a board's nights, a guide, a plan."""
    folder = tmp_path_factory.mktemp("measured")
    generator = np.random.default_rng(1)
    benchmarks = (*runs.BENCHMARKS, "emmc_vfat")
    for number in range(22):
        last = runs.write(folder / "results", runs.results(generator, benchmarks), number=number)
    console = History()
    console.open(last / "console.log")
    console.event(POWER_ON)
    console.feed(CONSOLE.read_bytes(), 0)
    console.close()
    shutil.copy(last / "console.log", folder)
    made = bash("evmperf guide --release 12.00 -o guide.rst", CHECKOUT, folder)
    assert made.returncode == 0, made.stderr
    (folder / "releases.txt").write_text("11.01\n12.00\n")
    page = (ROOT / "docs/lab-at-scale.md").read_text()
    (folder / "night.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    (folder / "baselines").mkdir()
    (folder / "lab.yaml").write_text(LAB)
    nights = [f"{1_700_000_000 + number * 86_400},build,{2 + number % 3 / 100},s" for number in range(25)]
    (folder / "ci.csv").write_text("\n".join(["time,series,value,unit", *nights, ""]))
    return folder


@pytest.fixture
def folder(tmp_path, measured):
    """A copy of it, for the lines of one page."""
    return shutil.copytree(measured, tmp_path / "folder")


def expected(line):
    """The entry of walk.yaml about a line, or that of a line that ends with 0."""
    return next((entry for entry in WALK["lines"] if re.search(entry["line"], line)), {"status": 0})


def walked(lines, installed, folder):
    """Run lines in turn, each with the variables that lines before it exported; returns what went wrong."""
    wrong, exports = [], ""
    for one in lines:
        text = one.text
        for name, stands_for in WALK["names"].items():
            text = re.sub(name, lambda _, text=stands_for: text, text)
        entry = expected(one.text)
        if text.startswith("export "):
            exports += f"{text}\n"
        if entry["status"] == "not run":
            continue
        in_checkout = "virtual" in text or text.startswith("make ")
        done = bash(exports + text, CHECKOUT if in_checkout else installed, folder)
        needs = f"pip install 'evmperf[{entry['extra']}]'" if "extra" in entry else ""
        if needs := needs or ("needs the package guide-reader" if entry.get("reader") else ""):
            if needs not in done.stderr or done.returncode != ExitStatus.USAGE:
                wrong.append(f"{one.where}:{one.line}: {text}: does not say {needs!r}: {done.stderr}")
            done = bash(exports + text, CHECKOUT, folder)
        said = done.stdout + done.stderr
        fine = done.returncode == entry["status"] and re.search(entry.get("says", ""), said)
        if not fine or WRONG.search(said):
            wrong.append(
                f"{one.where}:{one.line}: {text}: ends with status {done.returncode}: {said[-1500:]}"
            )
    return wrong


def bash(text, installed, folder):
    hidden = ("EVMPERF_", "LG_", "PYTHON")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environment |= {
        "CHECKOUT": str(ROOT),
        "PATH": f"{installed}{os.pathsep}{os.environ['PATH']}",
        "HOME": str(folder / "home"),
        "PYTEST_ADDOPTS": "--collect-only -q",  # what they measure is the business of selftests/measuring
    }
    return programs.run("bash", "-c", text, cwd=folder, environment=environment, timeout_s=120)


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_of_a_page_run(page, installed, folder):
    wrong = walked(blocks(page), installed, folder)
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="session")
def examples(installed, measured):
    """The lines that the help of each command shows."""
    shown = {name: bash(f"evmperf {name} --help", installed, measured) for name in COMMANDS}
    assert not [
        name for name, done in shown.items() if done.returncode or "usage: evmperf" not in done.stdout
    ]
    return [one for name, done in shown.items() for one in shown_by(name, done.stdout)]


def test_the_examples_of_help_run(examples, installed, folder):
    wrong = walked(examples, installed, folder)
    assert not wrong, "\n".join(wrong)


def test_every_exception_is_about_a_documented_line(examples):
    lines = [one.text for page in PAGES for one in blocks(page)]
    lines += [one.text for one in examples]
    assert {entry["line"] for entry in WALK["lines"]} <= {expected(line).get("line") for line in lines}
    assert not [name for name in WALK["names"] if not any(re.search(name, line) for line in lines)]


@pytest.mark.parametrize("page", PAGES)
def test_the_options_in_a_pages_sentences_are_options(page, capsys):
    wrong = []
    for one in inline(page):
        program, *words = shlex.split(one.text)
        if program == "evmperf":
            with contextlib.suppress(SystemExit):
                main._parser(words[0]).parse_args(words)
            said = capsys.readouterr().err
            if "unrecognized arguments" in said or "invalid choice" in said:
                wrong.append(f"{one.where}:{one.line}: {one.text}: {said}")
    assert not wrong, "\n".join(wrong)
