"""Tables of the terminal, with baseline and change beside each figure; the look that pages share."""

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from evmperf.judge.published import scatter, source
from evmperf.model.facts import Facts
from evmperf.model.figures import Key, figures
from evmperf.model.results import Direction, Sample
from evmperf.model.run import Run
from evmperf.model.verdict import Judgement, Outcome, Verdict
from evmperf.publish.guide import writer
from evmperf.publish.pages import look, plots
from evmperf.publish.report import page, summary, verdicts
from evmperf.publish.report.shape import text_table
from selftests.support import runs, spools

BOARD = Run("x", "am64xx-hsevm", "full", os="RT-linux", facts=Facts(virtual=False))


def measured(benchmark, value, profile="full"):
    for result in runs.results(np.random.default_rng(1), [benchmark], profile=profile, count=1):
        samples = tuple(Sample(s.metric, value, s.unit, 0, 1) for s in result.samples)
        yield replace(result, samples=samples)


def test_a_board_with_published_figures_shows_them_with_the_change():
    there = source.baseline(BOARD)
    found = {
        key.metric: figure.mean
        for key, figure in there.figures.items()
        if (key.benchmark, key.case) == ("uboot_emmc_raw", "2000000")
    }
    mean = found["read_throughput"]
    text = text_table(measured("uboot_emmc_raw", mean * 1.1), 160, there)
    assert "TI 12.00" in text
    # A row a size, both metrics in it, and what the guide has in KiB/s in a unit of its size.
    (line,) = (line for line in text.splitlines() if line.startswith("32 MiB"))
    assert f" {mean / 1024:.0f} +10.0 %" in " ".join(line.split())


def test_the_report_begins_with_a_summary_beside_the_published_figures(tmp_path):
    there = source.baseline(BOARD)
    mean = there.figures["uboot_emmc_raw", "2000000", "read_throughput"].mean
    folder = spools.write(tmp_path, BOARD, list(measured("uboot_emmc_raw", mean * 1.1)))
    text = page.render(folder)
    summary, _, rest = text.partition('<dl class="summary"')[2].partition("</dl>")
    assert "<dt>Storage read</dt>" in summary
    assert re.search(r"TI 12\.00\S*: \S+ MiB/s, 10\.0 % higher", summary)
    table = rest.partition("<table")[2].partition("</table>")[0]
    assert re.search(r">TI \d+, \+10\.0\s%", table)
    own = replace(BOARD, release="11.00")
    assert source.baseline(own).published.release.startswith("11.00")  # not a later one


def test_another_profile_or_program_is_shown_without_a_change():
    for benchmark, profile in (("uboot_emmc_raw", "quick"), ("emmc_ext4", "full")):
        text = text_table(measured(benchmark, 50.0, profile), 160, source.baseline(BOARD))
        assert "MB/s)" in " ".join(text.split()) or "KiB/s)" in " ".join(text.split())
        assert "+" not in text


def test_virtual_and_unknown_boards_have_no_baseline():
    virtual = replace(BOARD, facts=Facts(virtual=True))
    assert source.baseline(virtual) is None
    assert source.baseline(replace(BOARD, board="x-evm")) is None
    assert "change" not in text_table(measured("uboot_emmc_raw", 1.0), 160)


def test_a_difference_has_a_colour_only_outside_the_scatter_of_releases():
    there = source.baseline(BOARD)
    usual = scatter.between_releases(BOARD.board, BOARD.os, "openssl_throughput", "throughput")
    assert 0 < usual < 0.2
    assert scatter.between_releases(BOARD.board, BOARD.os, "no_such_table", "throughput") is None
    key, figure = next((k, f) for k, f in there.figures.items() if k.benchmark == "openssl_throughput")
    tones = {}
    for name, change in (("within", -usual / 2), ("worse", -2 * usual), ("better", 2 * usual)):
        results = list(measured("openssl_throughput", figure.mean * (1 + change)))
        (mine,) = (f for f in figures(results).values() if f.key == key)
        shown = summary.beside(mine, there)
        tones[name] = shown.tone
        guide = writer._way(mine, figure, BOARD.board, BOARD.os)
        assert guide == ("within the scatter of releases" if name == "within" else name)
    assert tones == {"within": "", "worse": "bad", "better": "good"}


def test_a_run_at_80_columns_has_every_mean_and_unit_whole():
    run = spools.a_run()
    text = text_table([spools.a_result(run, 0, [2457600.123, 2457600.125])], 80)
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "2457600" in text
    assert "MB/s" in text


def test_verdicts_at_80_columns_say_which_what_and_why():
    why = "the kernel differs (6.12.49, not 6.6.58)"
    key = Key("lmbench", "lat_fs_16k_and_more", "latency_of_something")
    verdict = Verdict(key, Outcome.WORSE, "MB/s", Direction.HIGHER, 2.4e6, 3.1e6, 1e5, why=why)
    text = verdicts.text(Judgement("run", "board", "last:20", (verdict,)), width=80)
    assert all(len(line) <= 80 for line in text.splitlines())
    lines = [line.ljust(80) for line in text.splitlines()[:-1]]
    # Columns are apart where two characters are blank in every line.
    blank = "".join(" " if {line[i] for line in lines} == {" "} else "x" for i in range(80))
    spans = [match.span() for match in re.finditer(r"x+(?: x+)*", blank)]
    cells = {}
    for begin, end in spans:
        heading, *parts = [line[begin:end].strip() for line in lines]
        cells[heading] = "".join(parts)
    assert cells["metric"] == key.metric
    assert cells["case"] == key.case
    assert cells["change"] == "-22.6 %"
    assert cells["why"].replace(" ", "") == why.replace(" ", "")


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
