"""evmperf's options on pytest's command line."""

from pathlib import Path

import pytest


def add(parser: pytest.Parser) -> None:
    """Add them."""
    group = parser.getgroup("evmperf", "measuring boards")
    group.addoption(
        "--profile",
        choices=("full", "quick"),
        help="full: the guides' parameters; quick: short ones for a first look (default: the board file's)",
    )
    group.addoption(
        "--image",
        default="",
        metavar="IMAGE",
        help="install this on the board first, and verify that it runs; a file, a URL, or a release of "
        "the lab's list (docs/provisioning.md)",
    )
    for part in ("kernel", "dtb", "ramdisk"):
        group.addoption(
            f"--{part}",
            default="",
            metavar="FILE",
            help=f"boot this {part} over the network; nothing is written (docs/provisioning.md)",
        )
    group.addoption("--release", default="", help="SDK release, if the image does not name it")
    group.addoption(
        "--results",
        type=Path,
        default=Path("results"),
        metavar="FOLDER",
        # Without the =, pytest takes an existing folder for one with tests.
        help="as --results=FOLDER: one folder per run (default: results)",
    )
    group.addoption("--run-kind", default="desk", help="kind of run: desk, nightly, lava, ...")
    group.addoption(
        "--wait",
        default="",
        metavar="TIME",
        help="time to wait for a board in use: 90s, 30m, 2h (default: none)",
    )
    group.addoption(
        "--grace",
        default="10m",
        metavar="TIME",
        help="while waiting, leave a kicked board for this time to the person who kicked its "
        "holder, or until they release it (default: 10m)",
    )
    group.addoption(
        "--give-way",
        action="store_true",
        help="end after the current case when somebody asks for the board (`evmperf ask`)",
    )
    group.addoption(
        "--repeat",
        default="1",
        metavar="HOW",
        help="repetitions of each case, or until:2%% (until the 95 %% confidence interval "
        "of its means is within 2 %%, or 10 minutes are spent; until:2%%/1h: or an hour)",
    )
    group.addoption(
        "--boots",
        type=int,
        default=0,
        metavar="N",
        help="cold boots of each case of boot times (default: the profile's number)",
    )
    group.addoption("--run-id", default="", help="the run's id, for programs that start sessions")
    group.addoption(
        "--answer",
        type=Path,
        metavar="FILE",
        help="write the session's end there as JSON, for programs that start sessions",
    )
    group.addoption("--keep-on", action="store_true", help="leave the board switched on at the end")
    group.addoption(
        "--vary",
        action="append",
        default=[],
        metavar="WORD",
        help="measure the board with this change: args:TEXT (kernel arguments), "
        "uboot:NAME=VALUE, run:COMMAND (after each boot), image:FILE, or a YAML file of such words",
    )
    group.addoption(
        "--leave-out", action="append", default=[], metavar="BENCHMARK/CASE", help="do not measure this case"
    )
    group.addoption(
        "--fact", action="append", default=[], metavar="NAME=VALUE", help="one more fact to keep with the run"
    )
