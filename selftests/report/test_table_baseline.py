"""Baseline and change beside each figure of a run."""

import re

import numpy as np
from msgspec.structs import replace

from evmperf.judge.published import scatter, source
from evmperf.model.facts import Facts
from evmperf.model.figures import figures
from evmperf.model.results import Sample
from evmperf.model.run import Run
from evmperf.publish.guide import writer
from evmperf.publish.report import page, summary
from evmperf.publish.report.shape import text_table
from selftests.support import runs, spools

BOARD = Run("x", "am64xx-hsevm", "full", os="RT-linux", facts=Facts(virtual=False))


def row(text, case):
    return next(line for line in text.splitlines() if case in line)


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
