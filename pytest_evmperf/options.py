"""evmperf's options on pytest's command line."""

from pathlib import Path

import pytest

from evmperf.cli.arguments import arg, flag, several

_OPTIONS = (
    arg(
        "--profile",
        "full: the guides' parameters; quick: short ones for a first look (default: the board file's)",
        choices=("full", "quick"),
    ),
    arg(
        "--image=IMAGE",
        "install this on the board first, and verify that it runs; a file, a URL, or a release of "
        "the lab's list (docs/provisioning.md)",
    ),
    *(
        arg(f"--{part}=FILE", f"boot this {part} over the network; nothing is written (docs/provisioning.md)")
        for part in ("kernel", "dtb", "ramdisk")
    ),
    arg("--release", "SDK release, if the image does not name it"),
    # Without the =, pytest takes an existing folder for one with tests.
    arg(
        "--results=FOLDER",
        "as --results=FOLDER: one folder per run (default: results)",
        type=Path,
        default=Path("results"),
    ),
    arg("--run-kind", "kind of run: desk, nightly, lava, ...", default="desk"),
    arg("--wait=TIME", "time to wait for a board in use: 90s, 30m, 2h (default: none)"),
    arg(
        "--grace=TIME",
        "while waiting, leave a kicked board for this time to the person who kicked its "
        "holder, or until they release it (default: 10m)",
        default="10m",
    ),
    flag("--give-way", "end after the current case when somebody asks for the board (`evmperf ask`)"),
    arg(
        "--repeat=HOW",
        "repetitions of each case, or until:2%% (until the 95 %% confidence interval "
        "of its means is within 2 %%, or 10 minutes are spent; until:2%%/1h: or an hour)",
        default="1",
    ),
    arg(
        "--boots=N",
        "cold boots of each case of boot times (default: the profile's number)",
        type=int,
        default=0,
    ),
    arg("--run-id", "the run's id, for programs that start sessions"),
    arg(
        "--answer=FILE", "write the session's end there as JSON, for programs that start sessions", type=Path
    ),
    flag("--keep-on", "leave the board switched on at the end"),
    several(
        "--vary",
        "WORD",
        "measure the board with this change: args:TEXT (kernel arguments), "
        "uboot:NAME=VALUE, run:COMMAND (after each boot), image:FILE, or a YAML file of such words",
    ),
    several("--leave-out", "BENCHMARK/CASE", "do not measure this case"),
    several("--fact", "NAME=VALUE", "one more fact to keep with the run"),
)


def add(parser: pytest.Parser) -> None:
    """Add them."""
    group = parser.getgroup("evmperf", "measuring boards")
    for names, words in _OPTIONS:
        group.addoption(*names, **words)
