"""The report of a run, opened as a person does: offline, on a phone, on paper."""

import json
import re
import shutil
from html import unescape
from urllib.parse import unquote

import numpy as np
import pytest
from msgspec.structs import replace
from PIL import Image
from playwright.sync_api import expect

from evmperf.benchmarks import catalogue
from evmperf.boards.console.record import HEADER, ConsoleRecord
from evmperf.commands.app import why
from evmperf.commands.cli.main import main
from evmperf.measure.runs.spool import VERDICTS, Spool, append_records
from evmperf.model.errors import Kind
from evmperf.model.exits import ExitStatus
from evmperf.model.records import VerdictRecord
from evmperf.model.results import Failure, Sample, Status
from evmperf.model.state import State
from evmperf.publish.report import page
from selftests.support import browser as browsers
from selftests.support import spools
from selftests.support.browser import violations
from selftests.support.recordings import DATA

PHONE = {"width": 360, "height": 740}
DESK = {"width": 1280, "height": 900}


def judged(folder):
    """A report with something of each kind in it."""
    spools.judge(folder, "better", "when first looked at")
    spools.judge(folder, "worse", "by 20 %")
    page.write(folder)
    return folder


@pytest.fixture(scope="module")
def everything(tmp_path_factory):
    """The report of a made-up run of the whole catalogue."""
    return judged(spools.of_catalogue(tmp_path_factory.mktemp("everything")))


@pytest.fixture(scope="module")
def one_row(tmp_path_factory):
    """The same with a row of each table: axe looks at every cell of a page."""
    return judged(spools.of_catalogue(tmp_path_factory.mktemp("rows"), rows=1))


@pytest.fixture
def recorded(tmp_path):
    return spools.recorded(tmp_path)


def booted(run, cycles, number=0, error=None, **more):
    """A case of boots: of each cycle, by its number, the seconds of each metric."""
    samples = tuple(
        Sample(
            metric, value, "s", cycle, run.started_ns + cycle, error if metric.startswith("end_") else None
        )
        for cycle, times in cycles.items()
        for metric, value in times.items()
    )
    case = {"case": "default_rootfs", "benchmark": "boot_time_mmcsd", "driver": "boot"}
    return spools.a_result(run, number, samples=samples, **case | more)


@pytest.fixture
def opened(browser):
    """Open a run's report, written if there is none."""

    def open_(folder, viewport=DESK, **options):
        if not (folder / page.NAME).exists():
            page.write(folder)
        return offline((folder / page.NAME).as_uri(), viewport, **options)

    with browsers.offline(browser) as offline:
        yield open_


@pytest.mark.parametrize(("viewport", "scheme"), [(PHONE, "dark"), (DESK, "light")])
def test_it_is_accessible(opened, one_row, viewport, scheme):
    sheet = opened(one_row, viewport, color_scheme=scheme)
    assert violations(sheet) == []


@pytest.mark.parametrize("width", [360, 1300])
def test_a_full_run_is_small_says_what_matters_first_and_is_whole_on_every_screen_and_paper(
    opened, everything, width
):
    assert (everything / "report.html").stat().st_size < 2_000_000
    sheet = opened(everything, {"width": width, "height": 900})
    assert sheet.locator(".verdict").bounding_box()["y"] < 100
    headings = sheet.locator("h2").all_inner_texts()
    assert headings[:2] == ["Worse than the baseline", "Failures"]
    text = unescape(sheet.content())
    assert "(at most 20): by 20 %" in text
    assert "when first looked at" not in text
    assert "1 boot, 1 failed" in sheet.locator(".counts").inner_text()
    assert "Kernel panic - not syncing: <made up>" in text
    box = sheet.locator(".summary strong").first.bounding_box()
    assert box["y"] + box["height"] < 900
    sheet.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert sheet.evaluate("document.documentElement.scrollWidth") <= width
    sheet.emulate_media(media="print")
    assert not sheet.locator("nav").is_visible()
    assert sheet.locator(".wide").first.evaluate("e => getComputedStyle(e).overflowX") == "visible"


def test_every_figure_of_the_table_is_there_and_without_verdicts_nothing_speaks_of_them(opened, recorded):
    sheet = opened(recorded)
    text = sheet.locator("body").inner_text()
    assert "verdict" not in text
    assert "baseline" not in text
    cells = [text for text in sheet.locator(".sizes td").all_inner_texts() if text.strip() not in ("", "-")]
    records = [json.loads(line) for line in (recorded / "results.jsonl").open()]
    results = [r for r in records if r["record"] == "result"]
    assert len(cells) == sum(len({s["metric"] for s in r["samples"]}) for r in results)
    assert "All measured: 27 of 27" in sheet.locator(".verdict").inner_text()
    # Two boot benchmarks, and throughput and load of five that go over sizes, U-Boot's without.
    expect(sheet.locator("figure .bars")).to_have_count(2)
    expect(sheet.locator("figure canvas")).to_have_count(5 * 2 + 1)


def test_links_lead_to_files(opened, tmp_path):
    folder = spools.recorded(tmp_path)
    names = re.findall(r'"(raw/[^"]+)"', (folder / "results.jsonl").read_text())
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    links = opened(folder).locator("a[href]").evaluate_all("l => l.map(a => a.href)")
    files = {unquote(link) for link in links if "#" not in link}
    assert {(folder / name).as_uri() for name in names} <= {f.replace(" ", "%20") for f in files}
    for link in files:
        assert (folder / link.removeprefix(folder.as_uri() + "/")).exists(), link


def test_a_failure_brings_the_console_of_its_time(opened, tmp_path):
    run = spools.a_run()
    failure = Failure(Kind.BOARD, "the board <hangs>", "write", raw="raw/a b/out.txt")
    result = spools.a_result(run, 0, (), status=Status.FAILED, failures=(failure,))
    folder = spools.write(tmp_path, run, [result])
    archive = b"H4sIAAAAAAAAA" * 6 + b"\r\n"
    said = [b"in time\r\n" + archive * 3, b"Oops: <b>\x00\r\n", b"too late\r\n"]
    log = [HEADER]
    for number, data in enumerate(said):
        wall_ns = run.started_ns + number * 2 * 10**9
        log.append(ConsoleRecord(number * 10**9, wall_ns, "<", data, 2_000_000).line())
    (folder / "console.log").write_bytes(b"".join(log) + b"9.000000000 2026-")
    sheet = opened(folder)
    assert sheet.locator("pre").inner_text() == (
        "in time\n[output of a step, as a compressed archive]\nOops: <b>?"
    )
    assert "the board <hangs>" in sheet.locator("details").first.inner_text()
    assert sheet.locator("a", has_text="output of write").get_attribute("href") == "raw/a%20b/out.txt"


def test_cases_are_in_the_order_of_their_numbers(tmp_path):
    run = spools.a_run()
    labels = ["1m", "256k", "16", "4k", "9"]
    cases = [spools.a_result(run, n, case=label) for n, label in enumerate(labels)]
    text = page.render(spools.write(tmp_path, run, cases))
    places = [text.index(f'<th scope="row" title="{label}">') for label in ("9", "16", "4k", "256k", "1m")]
    assert places == sorted(places)


def test_a_failed_cycle_keeps_its_place_among_the_bars(opened, tmp_path):
    run = spools.a_run()
    cycles = {n: {"boot_time": 4.0 + n, "end_app": 5.5 + n} for n in (0, 2)}
    failure = Failure(Kind.BOARD, "no prompt", "cycle 2")
    result = booted(run, cycles, error=0.003, failures=(failure,), status=Status.PARTIAL)
    folder = spools.write(tmp_path, run, [result])
    sheet = opened(folder)
    rows = sheet.locator("figure .bars tr:not(.axis)").all_inner_texts()
    assert [" ".join(row.split()) for row in rows] == ["1 4.00 s", "2 board: no prompt failed", "3 6.00 s"]
    marks = [mark.get_attribute("title") for mark in sheet.locator("figure .bars b").all()]
    assert marks == ["app: 5.50 s", "app: 7.50 s"]
    caption = sheet.locator("figcaption").inner_text()
    assert "Boot time in 2 cycles: min 4.00 s, median 5.00 s, p95 6.00 s, max 6.00 s" in caption
    assert (
        "End app in 2 cycles: min 5.50 s, median 6.50 s, p95 7.50 s, max 7.50 s, each within 3.0 ms"
        in caption
    )


def test_trials_and_histograms_are_drawn(opened, tmp_path):
    run = spools.a_run()
    name = "raw/cyclictest/run/cyclictest.json"
    trials = [{"step": f"try {n}", "throughput": 100.0 + n, "loss": 0.1 * n} for n in range(6)]
    cases = [spools.a_result(run, 0, conditions={"trials": trials}), spools.a_result(run, 1, raw=(name,))]
    folder = spools.write(tmp_path, run, cases)
    (folder / name).parent.mkdir(parents=True)
    shutil.copy(DATA / "cyclictest" / "histogram.txt", folder / name)
    captions = opened(folder).locator("figcaption").all_inner_texts()
    assert captions == [
        "case 0: throughput in each trial of the search",
        "case 0: loss in each trial of the search",
        "eMMC ext4: how often each latency was seen",
    ]


def test_a_run_that_goes_on_has_a_report_too(tmp_path):
    run = spools.a_run(ended_ns=0, outcome="")
    text = page.write(Spool(tmp_path, run).folder).read_text()
    assert "not ended, or was killed" in text
    assert "not ended long" not in text


def test_a_huge_run_is_cut_and_says_so(tmp_path):
    run = spools.a_run()
    spool = Spool(tmp_path, run)
    spool.append(*(spools.a_result(run, n) for n in range(6000)))
    text = page.write(spool.folder).read_text()
    assert "5700 more cases are in results.jsonl" in text
    assert len(text) < 2_000_000


def verdict(case="102400", word="worse", **more):
    return VerdictRecord("emmc_ext4", case, "write_throughput", "emmc", word, baseline="last:30", **more)


@pytest.mark.parametrize(
    ("verdicts", "state", "said"),
    [
        ([], "", "Not compared with earlier runs."),
        ([verdict(word="same")], "good", "Decided figures: 1, none worse"),
        ([verdict(word="not comparable", why="first run")], "unsure", "could be decided"),
        (
            [verdict(word="same"), verdict("262144", "cannot tell", why="noise")],
            "unsure",
            "1 of 2 figures are undecided (noise)",
        ),
        ([verdict(change=-0.2)], "bad", "(at most 30): eMMC ext4, 100 KiB, write -20.0 %."),
    ],
)
def test_one_sentence_on_top_says_what_is_known(tmp_path, verdicts, state, said):
    folder = spools.write(tmp_path, spools.a_run(exit_status=0), [spools.a_result(spools.a_run())])
    append_records(folder, verdicts, VERDICTS)
    text = page.render(folder)
    assert f'class="verdict {state}"' in text
    assert said in text


def test_a_figure_has_its_change_its_range_and_the_reason_for_no_verdict(opened, tmp_path):
    run = spools.a_run(facts={"virtual": True, "tuned": False})
    figures = [spools.a_result(run, n, case=case) for n, case in enumerate(("102400", "262144", "524288"))]
    folder = spools.write(tmp_path, run, figures)
    append_records(
        folder,
        [
            verdict(word="same", change=0.01, was=50.0, tolerance=2.0),
            verdict("262144", change=-0.1, was=50.0, tolerance=9.0),
            verdict("524288", "not comparable", why="kernel differs"),
        ],
        VERDICTS,
    )
    sheet = opened(folder)
    told = sheet.locator(".sizes tbody tr").all_inner_texts()
    assert told[0].startswith("100 KiB")
    # What is the same is folded.
    assert "%" not in told[0]
    folded = [cell.get_attribute("title") for cell in sheet.locator(".sizes td").all()]
    assert "earlier runs 50.0: same, +1.0 % ±4.0 %" in folded[0]
    # Less than one night would have shown: its evidence is in several, so there is no such range.
    assert "-10.0\N{NO-BREAK SPACE}% worse" in told[1]
    assert "±" not in folded[1]
    assert "a: not comparable: kernel differs" in sheet.locator(".notes").first.inner_text()
    facts = sheet.locator("dl").last.inner_text().split()
    assert facts[facts.index("virtual") + 1] == "yes"
    assert "tuned" not in facts


def test_the_level_before_is_in_the_plots(tmp_path):
    run = spools.a_run()
    figures = [
        spools.a_result(run, n, case=str(size), params={"buffer_size": size})
        for n, size in enumerate((102400, 262144))
    ]
    metric = figures[0].samples[0].metric
    folder = spools.write(tmp_path, run, figures)
    records = [verdict(word="same", was=50.0), verdict("262144", "same", was=60.0)]
    append_records(folder, [replace(record, metric=metric) for record in records], VERDICTS)
    (drawn,) = re.findall(r'data-plot="([^"]*)"', page.render(folder))
    *_, before = json.loads(unescape(drawn))["series"]
    assert before["of"] == 0
    assert before["points"] == [[102400, 50.0], [262144, 60.0]]


def test_why_figures_are_worse_than_published_is_said_and_nothing_that_was_not_read(opened, tmp_path):
    run = spools.a_run(board="j7200-evm", release="09.02")
    limited = State({"cpu.policy0.scaling_max_freq": 500000, "cpu.policy0.cpuinfo_max_freq": 2000000})
    cases = [
        spools.a_result(run, n, benchmark=name, case="1m", profile="full", samples=(sample,), state=state)
        for n, (name, state) in enumerate((("emmc_ext4_fio_1g", limited), ("mmcsd_ext4_fio_1g", None)))
        for sample in (Sample("read_throughput", 50.0, "MB/s", 0, run.started_ns),)
    ]
    folder = spools.write(tmp_path, run, cases)
    why.report(folder)
    sheet = opened(folder, PHONE)
    answers = sheet.locator("section[aria-labelledby=why] details")
    said = {text.split("\n")[0]: text for text in answers.all_text_contents()}
    assert len(said) == len(cases)
    (looked,) = (text for text in said.values() if "eMMC" in text)
    assert "clocked down: cpu.policy0 is limited to 500 of 2000 MHz (up to 4.00 times)" in looked
    assert "evmperf ab BOARD.yaml" in looked
    (unseen,) = (text for text in said.values() if "eMMC" not in text)
    assert "not recorded" in unseen
    assert "clocked" not in unseen
    assert violations(sheet) == []


def test_boot_bars_share_a_scale_with_an_axis_and_each_algorithm_has_its_chart(opened, tmp_path):
    run = spools.a_run()
    boots = [
        booted(run, {0: {"boot_time": s, "kernel": s / 2, "userland": s / 2}}, number, case=case)
        for number, (case, s) in enumerate((("default_rootfs", 10.0), ("init_sh", 4.0)))
    ]
    benchmark = catalogue.benchmark("crypto_comparison")
    crypto = [
        spools.a_result(
            run, n, benchmark=benchmark.name, driver="crypto", case=case.label, params=case.params
        )
        for n, case in enumerate(benchmark.cases("full"))
    ]
    folder = spools.write(tmp_path, run, [*boots, *crypto])
    sheet = opened(folder)
    ticks = [row.split() for row in sheet.locator(".bars .axis").all_inner_texts()]
    assert ticks == [["0", "2", "4", "6", "8", "10", "s"]] * 2
    widths = [box.bounding_box()["width"] for box in sheet.locator(".bars .track span[title]").all()]
    assert widths[2] == pytest.approx(widths[0] * 0.4, rel=0.05)
    captions = sheet.locator("figure figcaption").all_inner_texts()
    algorithms = {case.params["algorithm"] for case in benchmark.cases("full")}
    assert len(algorithms) == 7
    for algorithm in algorithms:
        assert any(f", {algorithm}: MB/s against size" in caption for caption in captions)
    for drawn in re.findall(r'data-plot="([^"]*)"', sheet.content()):
        spec = json.loads(unescape(drawn))
        assert all(spec["axes"])
        for series in spec["series"]:
            places = [x for x, _ in series["points"]]
            assert len(set(places)) == len(places)


def test_boots_of_another_run_are_drawn_on_the_same_scale_on_the_page_and_as_a_picture(opened, tmp_path):
    def boots_of(name, kernel_s):
        run = spools.a_run(id=name)
        times = {"boot_time": kernel_s + 1, "kernel": kernel_s, "userland": 1.0}
        return spools.write(tmp_path, run, [booted(run, {0: times})])

    here, there = boots_of("here", 2.0), boots_of("there", 7.0)
    assert main(["show", str(here), "--beside", str(there)]) == 0
    sheet = opened(here)
    widths = [box.bounding_box()["width"] for box in sheet.locator(".bars span[title^=Kernel]").all()]
    assert widths[1] == pytest.approx(widths[0] * 3.5, rel=0.05)
    assert [" of there" in text for text in sheet.locator("figcaption").all_inner_texts()] == [False, True]
    file = tmp_path / "boots.png"
    assert main(["show", str(here), "--beside", str(there), "--png", str(file)]) == 0
    rows = np.asarray(Image.open(file)) == (0xCC, 0x79, 0xA7)
    lengths = {int(row.all(axis=1).sum()) for row in rows}
    assert max(lengths) == pytest.approx(3.5 * sorted(lengths)[-2], rel=0.05)
    assert main(["show", str(spools.recorded(tmp_path / "no")), "--png", "/no/such"]) == ExitStatus.USAGE
