"""The options that evmperf adds to pytest, beside those of a lab's own suite."""

import argparse
import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evmperf.commands.cli.arguments import argument
from evmperf.model.limits import short_words

_PREFIX = "evmperf_"
"""Before our names in pytest's namespace: a lab's suite may have options of the same names."""

OPTIONS = [
    argument(
        "--options-file",
        "--board",
        type=Path,
        metavar="FILE",
        help="evmperf's options for the board of --lg-env, whose file then need not have them",
    ),
    argument(
        "--profile",
        default="",
        choices=["full", "quick"],
        help="full: the guides' parameters; quick: short ones for a first look (default: the board file's)",
    ),
    argument(
        "--image",
        default="",
        metavar="IMAGE",
        help=(
            "install this on the board first, and verify that it runs; a file or a URL (docs/provisioning.md)"
        ),
    ),
    argument(
        "--perf",
        action="store_true",
        help="record with perf on the board while each tool runs (evmperf why --profile); it costs time",
    ),
    argument("--release", default="", help="SDK release, if the image does not name it"),
    argument(
        "--results",
        type=Path,
        default="results",
        metavar="FOLDER",
        help="as --results=FOLDER: one folder per run (default: results)",
    ),
    argument("--run-kind", default="desk", help="kind of run: desk, nightly, lava, ..."),
    argument(
        "--wait",
        default="",
        metavar="TIME",
        help="time to wait for a board in use: 90s, 30m, 2h (default: none)",
    ),
    argument(
        "--repeat",
        default="1",
        metavar="HOW",
        help=(
            "repetitions of each case, or until:2%% (until the 95 %% confidence interval of its "
            "means is within 2 %%, or 10 minutes are spent; until:2%%/1h: or an hour)"
        ),
    ),
    argument(
        "--boots",
        type=int,
        default=0,
        metavar="N",
        help="cold boots of each case of boot times (default: the profile's number)",
    ),
    argument(
        "--end",
        action="append",
        default=[],
        metavar="NAME=END",
        help=(
            "measure a further end of each boot: NAME=line:REGEX, NAME=ping:ADDRESS, NAME=tcp:HOST:PORT, "
            "NAME=http://URL, NAME=gpio:DRIVER of Labgrid, NAME=unit:UNIT of systemd"
        ),
    ),
    argument(
        "--reference",
        default="",
        metavar="FILE",
        help="say which parts of the boots are outside this file of `evmperf export --reference`",
    ),
    argument(
        "--tool",
        default="",
        choices=["", "ti", "own"],
        help=(
            "measure with TI's own programs (filesystem_tests, alsa_perf_tests, its netperf) or with "
            "evmperf's way (default: TI's where the board has them)"
        ),
    ),
    argument("--run-id", default="", help="the run's id, for programs that start sessions"),
    argument(
        "--answer",
        type=Path,
        metavar="FILE",
        help="write the session's end there as JSON, for programs that start sessions",
    ),
    argument(
        "--catalogue",
        action="store_true",
        help="measure evmperf's catalogue beside the tests that are named or found here",
    ),
    argument("--keep-on", action="store_true", help="leave the board switched on at the end"),
    argument(
        "--vary",
        action="append",
        default=[],
        metavar="WORD",
        help=(
            "measure the board with this change: args:TEXT (kernel arguments), uboot:NAME=VALUE, "
            "run:COMMAND (after each boot), image:FILE, or a YAML file of such words"
        ),
    ),
    argument(
        "--leave-out", action="append", default=[], metavar="BENCHMARK/CASE", help="do not measure this case"
    ),
    argument(
        "--fact", action="append", default=[], metavar="NAME=VALUE", help="one more fact to keep with the run"
    ),
]


def _word(names: tuple[str, ...]) -> str:
    return names[0].removeprefix("--").replace("-", "_")


def _short(kind: Callable[[str], Any]) -> Callable[[str], Any]:
    """Take a word of an option for argparse, which would quote a wrong one in full."""

    @functools.wraps(kind)
    def value(text: str) -> Any:
        if (short := short_words(text)) != text:
            raise argparse.ArgumentTypeError(f"{short!r} is too long")
        return kind(text)

    return value


def add(parser: pytest.Parser) -> None:
    """Add our options; where another plugin or a conftest has the name, `--evmperf-NAME` alone is ours."""
    group = parser.getgroup("evmperf", "measuring boards")
    for option in OPTIONS:
        long = f"--evmperf-{option.names[0].removeprefix('--')}"
        words = {**option.words, "dest": f"{_PREFIX}{_word(option.names)}"}
        if "action" not in words:
            words["type"] = _short(words.get("type", str))
        try:
            group.addoption(*option.names, long, **words)
        except (ValueError, argparse.ArgumentError):
            group.addoption(long, **words)


def given(config: pytest.Config) -> argparse.Namespace:
    """Our options by their names, without anybody else's."""
    words = [_word(option.names) for option in OPTIONS]
    return argparse.Namespace(**{word: getattr(config.option, f"{_PREFIX}{word}", None) for word in words})
