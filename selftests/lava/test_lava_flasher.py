"""A whole image that a real LAVA fetches, unpacks, and puts on a virtual EVM's card."""

from __future__ import annotations

import functools
import http.server

import pytest

from evmperf.commands.cli import main as cli
from evmperf.measure.runs.spool import read_results, read_run
from evmperf.model.exits import ExitStatus
from selftests.support import cardimage, web
from selftests.support import lavalab as labs

pytestmark = [pytest.mark.virtual_evm, pytest.mark.long_lava_job]

VARIANT = "virtual-sd"
KEYWORD = "emmc_vfat"


@pytest.fixture
def card_lab(tmp_path_factory):
    """A LAVA whose own board boots from a card behind a switch."""
    with labs.started(tmp_path_factory, VARIANT) as lab:
        yield lab


@pytest.fixture
def published(tmp_path):
    """Two releases on a web server: their URLs."""
    folder = tmp_path / "published"
    folder.mkdir()
    names = [f"{cardimage.name(VARIANT, number)}.wic.zst" for number in (1, 2)]
    for number, name in enumerate(names, 1):
        cardimage.build(VARIANT, number, folder / name, print)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with web.serving(handler) as server:
        yield [f"{server.url}/{name}" for name in names]


def submit(url, results):
    """Measure an image by a native job; its exit status."""
    words = ["--image", url, "-k", KEYWORD, "--wait", "--import", "--results", str(results)]
    return cli.main(["lava", "submit", VARIANT, *words])


def test_a_native_job_measures_the_image_it_was_given_or_nothing(card_lab, published, results, capsys):
    assert submit(published[0], results) == 0, capsys.readouterr()
    (folder,) = results.iterdir()
    run = read_run(folder)
    assert run.release == cardimage.name(VARIANT, 1)
    said = run.facts.provisioned
    assert said["name"] == published[0].rpartition("/")[2]
    assert said["uboot"] == run.facts.uboot == "U-Boot 2025.01 (Jan 01 2025 - 00:00:00 +0000)"
    measured = read_results(folder)
    assert measured
    assert all(result.status == "measured" for result in measured)
    # A flasher that does nothing: the card still holds the first release.
    (labs.folder() / "shared/evmperf").write_text("#!/bin/sh\n")
    assert submit(published[1], results) == ExitStatus.LAB_BROKEN
    (other,) = set(results.iterdir()) - {folder}
    assert read_run(other).exit_status == ExitStatus.LAB_BROKEN
    assert not any(result.samples for result in read_results(other))
