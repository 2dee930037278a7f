"""Pictures of a night's two pages, of a real night on scripted boards.

Eight boards that boot slower than in the nights before: one does not boot, one is a colleague's at
first, and of one some boots fail. Each page is drawn wide and narrow, in light and dark colours.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import yaml

from selftests.instruments import command
from selftests.support.browser import chromium
from selftests.support.placelab import REPOSITORY, PlaceLab, until

WIDTHS = (390, 1440)
_NIGHTS = 8


def draw(page: Path, name: str, folder: Path) -> None:
    """Take the pictures of one page, as it is now."""
    with chromium() as browser:
        for width in WIDTHS:
            for scheme in ("light", "dark"):
                sheet = browser.new_page(viewport={"width": width, "height": 600}, color_scheme=scheme)
                sheet.goto(page.as_uri())
                sheet.screenshot(path=folder / f"{name}-{width}-{scheme}.png", full_page=True)


def main(words: Sequence[str] | None = None) -> None:
    parser = command.parser(__spec__.name, __doc__)
    parser.add_argument("folder", type=Path, help="folder for the pictures")
    target = parser.parse_args(words).folder
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="evmperf-pictures-") as name:
        folder = Path(name)
        places = {f"am64x-{n}": {"board": "am64x"} for n in (1, 2, 3)}
        places |= {f"am62x-{n}": {"board": "am62x"} for n in range(1, 6)}
        lab = PlaceLab(folder, places)
        try:
            _night(lab, target)
        finally:
            lab.close()


def _night(lab: PlaceLab, target: Path) -> None:
    lab.environment |= {"LG_HOSTNAME": "lab", "LG_USERNAME": "ci"}
    for place in ("am64x-2", "am64x-3"):
        lab.client(place, "set-tags", "health=bad", "health_why=no login prompt within 240 s")
    lab.client("am62x-5", "acquire", user="bob")
    lab.boards["am64x-1"].boots[:] = ["panic"] * 9
    for place in ("am62x-1", "am62x-2"):
        lab.boards[place].boots[:] = ["stuck"]
    lab.boards["am62x-4"].boots[:] = ["well", "oops", "well"]
    file = lab.board_file(lab.folder / "am62x-sk.yaml")
    jobs: list[dict[str, object]] = [{"name": "am64x", "any": {"board": "am64x"}}]
    jobs += [{"place": f"am62x-{n}"} for n in range(1, 6)]
    plan = lab.folder / "release-12.yaml"
    usual = {"board": str(file), "benchmarks": "default_rootfs"}
    plan.write_text(
        yaml.safe_dump({"until": "30m", "stagger": "0s", "boards": [usual | job for job in jobs]})
    )
    _measure_before(lab, file)
    words = [sys.executable, "-m", "evmperf.commands.cli.main", "night", str(plan)]
    words += ["--results", str(lab.folder / "results")]
    process = subprocess.Popen(words, cwd=REPOSITORY, env=lab.environment)

    def shows(*said: str) -> bool:
        pages = list(lab.folder.glob("results/night-*/status.html"))
        return bool(pages) and all(word in pages[0].read_text() for word in said)

    try:
        until(lambda: shows("boot_time_mmcsd", "held by bob", "given up", "failed"), 300)
        (night,) = lab.folder.glob("results/night-*")
        draw(night / "status.html", "night-status", target)
        for place in ("am62x-1", "am62x-2"):
            lab.boards[place].go_on()
        lab.client("am62x-5", "release", user="bob")
        process.wait(600)
        draw(night / "night.html", "night", target)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def _measure_before(lab: PlaceLab, file: Path) -> None:
    """The nights before: what boots are compared with."""
    words = [sys.executable, "-m", "pytest", "--lg-env", str(file), "-k", "default_rootfs"]
    words += [f"--results={lab.folder / 'results'}", "-p", "no:cacheprovider"]
    environment = {**lab.environment, "LG_PLACE": "am62x-3"}
    for board in lab.boards.values():
        board.pace_s = 0.5
    for _ in range(_NIGHTS):
        subprocess.run(words, cwd=REPOSITORY, env=environment, stdout=subprocess.DEVNULL, check=True)
    for board in lab.boards.values():
        board.pace_s *= 1.25


if __name__ == "__main__":
    main()
