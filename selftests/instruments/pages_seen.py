"""Pictures of every page for boards with histories of 1, 2, 5, 30 and 365 nights.

Makes the runs, judges the newest as a night does, writes its report and the site, and the report of
an A/B; then takes a picture of each page 390 and 1300 pixels wide, and names what is wider than its
screen. Ends with 1 if anything is. `--docs` writes those of one history as docs/pictures/looks has them:
the first screens, in 64 colours.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from PIL import Image

from evmperf.commands.app import why
from evmperf.commands.cli.main import main as evmperf
from evmperf.judge import ab
from evmperf.judge.experiment import Experiment
from evmperf.measure.runs.history import SpoolFolder
from evmperf.publish import site
from evmperf.publish.report import ab as report
from selftests.instruments import command
from selftests.regress.rounds import FakeSessions, noisy
from selftests.support import years
from selftests.support.browser import chromium

HISTORIES = (1, 2, 5, 30, 365)
WIDTHS = (390, 1300)
_SCREENS = 1900
"""Pixels of a page that a picture of the documentation shows from its top."""
BOARD = "am64x-hsevm"
_BENCHMARKS = ("boot_time_mmcsd", "emmc_ext4", "emmc_raw_fio_1g", "uboot_emmc_raw")


def pages(folder: Path, nights: int) -> Iterator[tuple[str, Path]]:
    """Make a history of so many nights; yields the name and file of each page about it."""
    results, public = folder / "results", folder / "public"
    years.write(results, [BOARD], nights, _BENCHMARKS, changed=0.1)
    newest = max(results.iterdir())
    with contextlib.redirect_stdout(io.StringIO()):
        evmperf(["check", str(newest), "--against", "last:30", "--results", str(results)])
    why.report(newest)  # a check that decides nothing leaves it
    site.write(public, SpoolFolder(results))
    yield "report", newest / "report.html"
    yield "fleet", public / "index.html"
    yield "board", public / BOARD / "index.html"
    yield "benchmark", public / BOARD / "emmc_ext4" / "index.html"
    yield "case", public / BOARD / "emmc_ext4" / "1048576.html"


def comparison(folder: Path) -> Path:
    """The page of an A/B in which one figure is worse and some are not decided."""
    folder.mkdir(parents=True)
    sides: dict[str, list[str]] = {"a": [], "b": ["args:mitigations=off"]}
    wanted = Experiment(
        id="ab-1", boards=["env/am64x.yaml"], sides=sides, seed="seed", select="emmc_ext4", blocks=6
    )
    compared = ab.go_on(folder, wanted, FakeSessions(folder, noisy({"102400": -0.1})))
    report.write(folder, compared, ())
    return folder / "ab.html"


def main(words: Sequence[str] | None = None) -> int:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("folder", type=Path, help="folder for the pictures and what they show")
    parser.add_argument("nights", type=int, nargs="*", help=f"of each history (default: {HISTORIES})")
    parser.add_argument("--docs", type=Path, help="folder for small pictures")
    options = parser.parse_args(words)
    target = options.folder
    found = [("ab", comparison(target / "ab"))]
    for nights in options.nights or HISTORIES:
        there = pages(target / f"{nights}-nights", nights)
        found += [(f"{name}-{nights}", file) for name, file in there]
    wide = 0
    with chromium() as browser:
        for name, file in found:
            for width in WIDTHS:
                sheet = browser.new_page(viewport={"width": width, "height": 600})
                sheet.goto(file.as_uri())
                picture = target / f"{name}-{width}.png"
                sheet.screenshot(path=picture, full_page=True)
                if options.docs:
                    shown = Image.open(picture)
                    shown = shown.crop((0, 0, shown.width, min(shown.height, _SCREENS))).quantize(64)
                    shown.save(options.docs / f"{name.partition('-')[0]}-{width}.png", optimize=True)
                needed = sheet.evaluate("document.documentElement.scrollWidth")
                if needed > width:
                    wide += 1
                    print(f"{name}: {needed} pixels wide on a screen of {width}")
                sheet.close()
    print(f"{len(found)} pages, {wide} pictures wider than their screen: {target}/*.png")
    return 1 if wide else 0


if __name__ == "__main__":
    sys.exit(main())
