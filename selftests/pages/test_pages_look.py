"""The shared look: uPlot as its project publishes it, and plots that a browser can read."""

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


def test_a_histogram_of_nothing_is_nothing():
    assert plots.histogram("", [plots.Series("CPU 0", [(1, 0)])], "us") == ""
