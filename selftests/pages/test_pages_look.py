"""The shared look: uPlot as its project publishes it, and plots that a browser can read."""

import json
import re
from html import unescape
from pathlib import Path

import pytest

from evmperf.publish.pages import look, plots

NPM = Path(__file__).parents[1] / "npm/node_modules/uplot"
OURS = Path(look.__file__).parent / "uplot"


@pytest.mark.browser
def test_uplot_is_as_published():
    assert NPM.is_dir(), "this test needs npm's copy: make browser"
    for file in OURS.iterdir():
        theirs = NPM / file.name if file.name == "LICENSE" else NPM / "dist" / file.name
        assert file.read_bytes() == theirs.read_bytes(), file.name


def test_files_beside_pages_are_what_is_within_others(tmp_path):
    look.write(tmp_path)
    inline, linked = look.inline(), look.linked("../static/")
    assert (tmp_path / look.STYLE).read_text() in inline.style
    assert (tmp_path / look.LICENCE).read_text().startswith("The MIT License")
    assert f'href="../static/{look.STYLE}"' in linked.style
    assert f'src="../static/{look.SCRIPT}"' in linked.script
    assert look.inline(plots=False).script == ""


def test_what_to_draw_survives_the_way_into_the_page():
    evil = '"><b>&amp;'
    html = plots.lines(evil, [plots.Series(evil, [(1, 2.5)])], ("bytes", "MB/s"), sizes=True)
    data = json.loads(unescape(re.search(r'data-plot="([^"]*)"', html)[1]))
    assert data["series"] == [{"name": evil, "points": [[1, 2.5]]}]
    assert data["sizes"] is True
    assert "<b>" not in html


def test_a_histogram_of_nothing_is_nothing():
    assert plots.histogram("", [plots.Series("CPU 0", [(1, 0)])], "us") == ""


def test_bars_are_as_long_as_their_share_of_the_longest():
    rows = [plots.Bar("a", [3, 1], "4 s", [("app", 2)]), plots.Bar("b", [], "failed")]
    html = plots.bars("boots", ["U-Boot", "kernel"], rows, 5.0)
    assert re.findall(r"width:([\d.]+%)", html) == ["60.00%", "20.00%"]
    assert "left:40.00%" in html
    assert "failed" in html
