"""The guide as its readers meet it: a page in a browser, and a PDF."""

import re
import subprocess
import sys

import numpy as np
import pytest
from evmperf_guides import rst

from evmperf.commands.cli import main as cli
from evmperf.model.exits import ExitStatus
from evmperf.publish.guide import page as guide_page
from evmperf.publish.guide import writer
from selftests.support import runs
from selftests.support.browser import violations

SCREENS = [
    (width, scheme)
    for width in ({"width": 390, "height": 844}, {"width": 1440, "height": 900})
    for scheme in ("light", "dark")
]


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A guide of a measured release with everything beside its figures, as page and PDF."""
    folder = tmp_path_factory.mktemp("guide")
    results = folder / "results"
    found = list(runs.results(np.random.default_rng(1), count=3))
    for release, factor in (("11.00", 1.3), ("12.00", 1.0)):
        scaled = [runs.scaled(result, factor) for result in found]
        runs.write(results, scaled, board="virtual-evm", virtual=True, release=release)
    words = ["guide", "--release", "12.00", "--from", str(results), "--with", "counts,delta"]
    assert cli.main([*words, "--html", str(folder / "html"), "--pdf", str(folder / "pdf")]) == 0
    return folder


@pytest.fixture
def page(built, browser):
    """The guide in a browser."""
    opened = browser.new_page()
    opened.goto((built / "html/guide.html").as_uri())
    yield opened
    opened.close()


@pytest.mark.parametrize(("size", "scheme"), SCREENS)
def test_the_page_fits_every_screen_and_is_accessible(built, browser, size, scheme):
    page = browser.new_page(viewport=size, color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto((built / "html/guide.html").as_uri())
    assert said == []
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == size["width"]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    (first,) = re.findall(r"rgb\((\d+),", paper)
    assert (int(first) < 64) == (scheme == "dark")
    # A phone shows figures at once, not a screen of contents.
    assert page.evaluate("document.querySelector('nav details').open") == (size["width"] > 1000)
    page.close()


def test_a_change_says_in_words_which_way_it_goes(page):
    cells = page.evaluate(
        "[...document.querySelectorAll('.change')].map(c => [c.textContent, "
        "c.closest('table').rows[0].cells[c.closest('td').cellIndex].textContent])"
    )
    assert len(cells) > 20
    for text, header in cells:
        # Everything shrank by a fourth.
        way = "worse" if "Throughput" in header else "better"
        assert re.fullmatch(rf"\[n 3, -23\.1 % {way}.*\]", text), (text, header)


def test_the_cover_says_what_the_guide_is_of(built, page):
    cover = page.inner_text("header.cover")
    assert "Linux 12.00" in cover
    assert "virtual-evm" in cover
    assert "Measured by evmperf: virtual-evm." in cover
    assert "Changes are shown since release 11.00." in cover
    assert re.search(r"Measured (on|from) \d{4}-\d\d-\d\d", cover)
    first = said("pdftotext", "-l", "1", str(built / "pdf/guide.pdf"), "-")
    assert "Linux\n12.00" in first
    assert "Measured by evmperf: virtual-evm." in first


def said(*command):
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_pdf_has_all_figures_and_is_tagged_and_numbered(built):
    guide = rst.read((built / "html/source/guide.rst").read_text())
    cells = {cell for table in guide.tables for line in table.rows for cell in line.cells}
    words = "".join(said("pdftotext", str(built / "pdf/guide.pdf"), "-").split())
    assert [cell for cell in cells if "".join(re.findall(r"^[\d.]+", cell)) not in words] == []
    assert len(cells) > 50
    about = said("pdfinfo", str(built / "pdf/guide.pdf"))
    assert re.search(r"Tagged: +yes", about)
    (pages,) = re.findall(r"Pages: +(\d+)", about)
    last = said("pdftotext", "-layout", "-f", pages, str(built / "pdf/guide.pdf"), "-")
    assert re.search(rf"\b{pages} ?/ ?{pages}\b", last)
    contents = said("pdftotext", "-layout", "-f", "2", "-l", "2", str(built / "pdf/guide.pdf"), "-")
    assert re.search(r"Boot-time Measurement[ .]+3\b", contents)


def test_without_pango_the_way_to_it_is_named(built, tmp_path, monkeypatch, capsys):
    for name in [name for name in sys.modules if name.partition(".")[0] == "weasyprint"]:
        monkeypatch.delitem(sys.modules, name)
    (tmp_path / "weasyprint.py").write_text("raise OSError('cannot load libpango\\nat length')\n")
    monkeypatch.syspath_prepend(tmp_path)
    words = ["guide", "--release", "12.00", "--from", str(built / "results")]
    assert cli.main([*words, "--pdf", str(tmp_path / "pdf")]) == ExitStatus.USAGE
    told = capsys.readouterr().err
    assert "cannot load libpango" in told
    assert "apt-get install libpango-1.0-0" in told


def test_another_page_in_the_folder_is_not_of_the_guide(tmp_path):
    guide = tmp_path / "guide.rst"
    guide.write_text("Performance Guide\n=================\n\nFigures.\n")
    (tmp_path / "notes.rst").write_text("A `reference that ends nowhere\n")
    head = writer.Head("12.00", "Linux")
    assert "Figures." in guide_page.build(guide, tmp_path / "html", head).read_text()
