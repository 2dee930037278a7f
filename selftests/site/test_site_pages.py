"""The site of trends: what is written of runs, and pages opened as a person does."""

import json
import re
import shutil
from collections import Counter
from statistics import fmean
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from evmperf.commands.app import sources
from evmperf.commands.cli import main as cli
from evmperf.judge.accepted import Accepted
from evmperf.judge.trends import Point, Trend
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import SpoolFolder
from evmperf.model.errors import UsageError
from evmperf.model.figures import Key
from evmperf.publish import site
from evmperf.publish.site import case
from evmperf.publish.site.board import FigureCounts
from evmperf.publish.site.pages import slug
from selftests.support import browser as browsers
from selftests.support import spools, years
from selftests.support.browser import violations

BOARDS = ("am62x-sk", "am64x-hsevm")
BENCHMARKS = ("emmc_ext4", "uboot_emmc_raw")
NIGHTS = 70
STEP = 40
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1440, "height": 900}
CASE = "am64x-hsevm/emmc_ext4/102400.html"
WHY = "the driver now waits for the card"


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Two boards' nights; on one of them, two figures became worse at a known night."""
    folder = tmp_path_factory.mktemp("results")
    years.write(folder, BOARDS, NIGHTS, BENCHMARKS, changed=0.0)
    for run in sorted(folder.glob("am64x-hsevm-*"))[STEP:]:
        years.scale(run, lambda result, sample: 0.8 if is_worse(result, sample) else 1.0)
    return folder


def is_worse(result, sample):
    return (result.benchmark, result.case) == ("emmc_ext4", "102400") and "throughput" in sample.metric


@pytest.fixture(scope="module")
def public(results, tmp_path_factory):
    """The site of it, with one of the two changes accepted."""
    out = tmp_path_factory.mktemp("public")
    run = spool.read_run(sorted(results.glob("am64x-hsevm-*"))[STEP])
    meant = Accepted("emmc_ext4/*/read_throughput", run.board, run.id, run.started_ns, WHY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evmperf.judge.accepted.read", lambda: [meant])
        site.write(out, SpoolFolder(results))
    return out


@pytest.fixture
def opened(browser, public):
    """Open a page of the site."""
    with browsers.offline(browser, public.as_uri()) as offline:
        yield lambda place, viewport=DESK, **options: offline((public / place).as_uri(), viewport, **options)


def pages(public):
    return sorted(public.rglob("*.html"))


def test_every_link_of_every_page_leads_somewhere(public):
    texts = {page: page.read_text() for page in pages(public)}
    places = {page: set(re.findall(r' id="([^"]+)"', text)) for page, text in texts.items()}
    seen = 0
    for page, text in texts.items():
        for href in re.findall(r' (?:href|src)="([^"]+)"', text):
            parts = urlsplit(href)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            assert target.is_file(), f"{page}: {href}"
            assert not parts.fragment or parts.fragment in places[target], f"{page}: {href}"
            seen += 1
    assert seen > 150


def test_the_fleet_lists_what_became_worse_and_was_not_meant(public):
    text = (public / "index.html").read_text()
    assert "eMMC ext4, 100 KiB, write</a>" in text
    assert "eMMC ext4, 100 KiB, read</a>" not in text
    assert "1 of 48 figures became worse within 30 days" in text
    page = (public / "am64x-hsevm/index.html").read_text()
    assert f"accepted <small>({WHY})</small>" in page
    assert "No figure has a known change" in (public / "am62x-sk/index.html").read_text()


@pytest.mark.parametrize(
    ("place", "viewport", "scheme"),
    [
        ("index.html", PHONE, "dark"),
        ("am64x-hsevm/index.html", PHONE, "light"),
        ("am64x-hsevm/emmc_ext4/index.html", DESK, "light"),
        (CASE, PHONE, "light"),
        (CASE, DESK, "dark"),
    ],
)
def test_it_is_accessible_in_both_colours_and_not_wider_than_a_phone(opened, place, viewport, scheme):
    sheet = opened(place, viewport, color_scheme=scheme)
    assert violations(sheet) == []
    dark = sheet.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(22, 22, 22)"
    assert dark is (scheme == "dark")
    sheet.set_viewport_size(PHONE)
    sheet.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert sheet.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_a_night_leads_to_its_report_and_says_how_to_compare_it_with_the_run_before(opened, public, results):
    sheet = opened(CASE, PHONE)
    section = sheet.locator(".trend").first
    expect(section.locator("canvas")).to_be_visible()
    section.locator(".u-over").click(position={"x": 150, "y": 100})
    card = section.locator(".picked")
    expect(card).to_contain_text("release")
    (report,) = card.locator("a").evaluate_all("links => links.map(a => a.href)")
    run = unquote(report).split("/")[-2]
    assert report == (results / run / "report.html").as_uri()
    names = sorted(folder.name for folder in results.glob("am64x-hsevm-*"))
    before = names[names.index(run) - 1]
    assert card.locator("code").inner_text() == f"evmperf compare --facts {before} {run}"
    assert sheet.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


def test_nights_can_be_stepped_through_without_a_mouse(opened):
    section = opened(CASE).locator(".trend").first
    section.get_by_role("button", name="newest night").press("Enter")
    card = section.locator(".picked")
    last = card.locator("strong").inner_text()
    card.get_by_role("button", name="night before").press("Enter")
    before = card.locator("strong").inner_text()
    assert before < last
    card.get_by_role("button", name="night after").press("Enter")
    assert card.locator("strong").inner_text() == last


def test_every_sample_is_on_the_page_of_its_case_and_the_figure_is_their_mean(opened, results):
    drawn = {
        (series["metric"], run): (figure, values)
        for series in json.loads(opened(CASE).locator("#data").text_content())
        for run, figure, values in zip(series["runs"], series["figures"], series["values"], strict=True)
    }
    for number, folder in enumerate(sorted(results.glob("am64x-hsevm-*"))):
        (result,) = (
            r for r in spool.read_results(folder) if (r.benchmark, r.case) == ("emmc_ext4", "102400")
        )
        for metric in {sample.metric for sample in result.samples}:
            (figure, count), values = drawn.pop((metric, number))
            assert count == len(values)
            assert values == pytest.approx(result.values(metric), rel=1e-5)
            assert figure == pytest.approx(fmean(values), rel=1e-5)
    assert drawn == {}


def test_the_table_of_nights_has_what_is_drawn_and_fewer_can_be_shown(opened):
    section = opened(CASE).locator(".trend").first
    section.locator(".nights summary").click()
    expect(section.locator(".nights tbody tr")).to_have_count(NIGHTS)
    button = section.get_by_role("button", name="30 nights")
    button.click()
    assert button.get_attribute("aria-pressed") == "true"
    assert section.get_by_role("button", name="all").get_attribute("aria-pressed") == "false"


def test_hexadecimal_sizes_are_named(public):
    assert "32 MiB <small>(2000000)" in (public / "am62x-sk/uboot_emmc_raw/2000000.html").read_text()


def test_a_run_says_where_its_report_and_its_job_are(opened, public, tmp_path):
    addresses = {"results": "https://lab/results", "job": "https://ci/job/7"}
    run = spools.a_run(addresses=addresses)
    spools.write(tmp_path, run, [spools.a_result(run)])
    site.write(public / "served", SpoolFolder(tmp_path))
    sheet = opened(f"served/made-up/emmc_ext4/{slug('case 0')}.html")
    sheet.get_by_role("button", name="newest night").click()
    links = sheet.locator(".picked a").evaluate_all("links => links.map(a => a.href)")
    assert links == [f"https://lab/results/{run.id}/report.html", "https://ci/job/7"]
    shutil.rmtree(public / "served")


KEY = Key("boot_time_mmcsd", "default_rootfs", "boot_time")


@pytest.fixture
def out(tmp_path):
    return tmp_path / "public"


def write(tmp_path, reports=""):
    return site.write(tmp_path / "public", SpoolFolder(tmp_path / "results"), reports)


def test_reports_can_be_at_an_address_or_part_of_the_site(tmp_path, out):
    run = spools.recorded(tmp_path / "results")
    write(tmp_path, "https://lab/results/")
    assert f"https://lab/results/{run.name}/report.html" in (out / "virtual-evm/runs.js").read_text()
    for text in ("<title>one</title>", "<title>written again</title>"):
        (run / "report.html").write_text(text)
        write(tmp_path, site.COPIED)
    (copy,) = (out / "reports").iterdir()
    assert copy.read_text() == "<title>written again</title>"
    assert f'"reports/{copy.name}"' in (out / "virtual-evm/runs.js").read_text()


def test_the_guide_is_linked_where_there_is_one(tmp_path, out):
    spools.recorded(tmp_path / "results")
    write(tmp_path)
    assert "guide/index.html" not in (out / "index.html").read_text()
    (out / "guide").mkdir()
    (out / "guide/index.html").write_text("")
    write(tmp_path)
    assert 'href="guide/index.html"' in (out / "index.html").read_text()


def test_what_cannot_be_read_is_said_and_left_out(tmp_path, caplog):
    good = spools.recorded(tmp_path / "results")
    for name, file in (("damaged", "results.jsonl"), ("strange", "run.json")):
        folder = shutil.copytree(good, good.with_name(name))
        text = (folder / "run.json").read_text().replace(good.name, name)
        (folder / "run.json").write_text(text)
        (folder / file).write_text("{\n")
    assert write(tmp_path).runs == 2
    strange, damaged = caplog.messages
    assert re.search("strange/run.json: is damaged", strange)
    assert re.search("damaged: its results are damaged", damaged)
    assert (tmp_path / "public/virtual-evm/index.html").is_file()


def test_a_board_of_which_nothing_can_be_read_has_no_page(tmp_path, capfd):
    good = spools.recorded(tmp_path / "results")
    spools.write(tmp_path / "results", spools.a_run(), [])
    (tmp_path / "results/made-up-0000/results.jsonl").write_text("{\n")
    write(tmp_path)
    assert "made-up-0000: its results are damaged" in capfd.readouterr().err  # of a process of its own
    assert not (tmp_path / "public/made-up").exists()
    (tmp_path / "results/made-up-0000/results.jsonl").unlink()  # killed before it measured
    shutil.rmtree(good)
    write(tmp_path)
    for page in ("made-up/index.html", "index.html"):
        assert "None of 0 figures is decided yet" in (tmp_path / "public" / page).read_text()


def test_with_the_labs_history_a_run_counts_once(tmp_path, monkeypatch, capsys):
    years.write(tmp_path / "results", ["evm"], 6, ["uboot_emmc_raw"])
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "history"))
    runs = sorted((tmp_path / "results").iterdir())
    for run in runs:
        sources.copy(tmp_path / "history", run)
    for run in runs[:-1]:
        shutil.rmtree(run)
    where = ["-o", str(tmp_path / "public"), "--results", str(tmp_path / "results")]
    assert cli.main(["site", *where]) == 0
    assert "6 runs of 1 board" in capsys.readouterr().out
    text = (tmp_path / "public/evm/runs.js").read_text()
    assert text.count("report.html") == 6  # the history has whole runs
    assert f"{runs[-1].name}/report.html" in text


def test_no_runs_are_no_site(tmp_path):
    with pytest.raises(UsageError, match="holds no runs"):
        site.write(tmp_path / "public", SpoolFolder(tmp_path))


@pytest.mark.parametrize(("nights", "samples"), [(365, 600), (60_000, 3)])
def test_a_page_stays_small_and_says_what_it_leaves_out(nights, samples):
    found = [Point(night, 1.5, tuple(1.0 + n / 7 for n in range(samples)), "") for night in range(nights)]
    run = spools.a_run()
    text, said = case.fitting([Trend(KEY, "s", "lower", found)], [run] * nights)
    assert len(text) < 1_000_000
    assert "lowest and highest sample" in said
    (series,) = json.loads(text)
    assert series["runs"][-1] == nights - 1
    assert max(map(len, series["values"])) == 2
    assert {tuple(figure) for figure in series["figures"]} == {(1.5, samples)}
    assert (f"newest {len(series['runs'])} nights" in said) == (len(series["runs"]) < nights)


def test_slugs_are_files_of_their_own():
    given = ["4k", "A", "a", "a b", "a/b", "index", "", "x" * 300, "../..", "ü"]
    slugs = [slug(name) for name in given]
    assert len({slug.lower() for slug in slugs}) == len(given)
    assert all(re.fullmatch(r"[a-z0-9][a-z0-9._-]*", slug) for slug in slugs)
    assert slugs[0] == "4k"


def drawn(out):
    """What the page of a case draws, a series a metric."""
    text = (out / "evm/uboot_emmc_raw/2000000.html").read_text()
    return json.loads(re.search(r'id="data">(.*)</script>', text)[1]), text


def test_a_figure_that_is_off_has_its_mark(tmp_path, out):
    years.write(tmp_path / "results", ["evm"], 40, ["uboot_emmc_raw"], changed=0.0)
    for folder in sorted((tmp_path / "results").iterdir())[-4:]:
        years.scale(folder, lambda *_: 0.7)
    write(tmp_path)
    assert [series["off"][1] for series in drawn(out)[0]] == ["worse", "worse"]
    assert "4 of 4 figures became worse within 30 days" in (out / "index.html").read_text()


@pytest.mark.parametrize(("nights", "levels"), [(1, 0), (5, 0), (8, 1)])
def test_few_nights_are_amber_with_their_reason_and_have_no_level(tmp_path, out, nights, levels):
    years.write(tmp_path / "results", ["evm"], nights, ["uboot_emmc_raw"], changed=0.0)
    write(tmp_path)
    data, text = drawn(out)
    assert [len(series["levels"]) for series in data] == [levels] * len(data)
    index = (out / "index.html").read_text()
    if not levels:
        assert 'class="verdict unsure"' in index
        assert "None of 4 figures is decided yet; 4 not comparable" in index
        assert '<span class="unsure">not comparable</span> (' in text
        assert "5 are needed" in text


def test_a_figure_counts_once_and_every_word_is_counted():
    words = Counter({"worse": 1, "same": 3, "cannot tell": 2, "not judged": 1})
    counts = FigureCounts(7, "within 30 days", Counter({"worse": 1}), words)
    assert counts.headline == (
        "1 of 7 figures became worse within 30 days; 2 undecided for noise; 1 shown only."
    )
    assert counts.state == "bad"
    for state, given in (
        ("bad", {"worse": 1}),  # for longer than that
        ("unsure", {"same": 9, "not comparable": 1}),
        ("unsure", {}),
        ("good", {"same": 9, "not judged": 1}),
    ):
        assert FigureCounts(words=Counter(given)).state == state


def test_the_largest_undecided_losses_stand_before_what_became_worse(tmp_path):
    """A loss by 40 % among nights that scatter as much is not decided, and is not nothing."""
    years.write(tmp_path / "results", ["evm"], 8, ["uboot_emmc_raw"], changed=0.0)
    folders = sorted((tmp_path / "results").iterdir())
    for folder, share in zip(folders, (1.0, 0.5, 1.4, 0.7, 1.2, 0.6, 1.3, 0.55), strict=True):
        small = 1 - 0.1 * (1 - share)
        years.scale(folder, lambda r, _, s=share, less=small: s if r.case == "2000000" else less)
    write(tmp_path)
    for page in ("index.html", "evm/index.html"):
        text = (tmp_path / "public" / page).read_text()
        maybe = text.index("What may have become worse")
        assert maybe < text.index('<h2 id="worse">' if page == "index.html" else '<h2 id="changes">')
        changes = re.findall(r'class="unsure">cannot tell</td><td class="n">(-[\d.]+) %', text)
        assert len(changes) >= 2, text
        sizes = [abs(float(change)) for change in changes]
        assert sizes == sorted(sizes, reverse=True)
        assert sizes[0] > 30


def test_goals_and_their_owners_are_on_the_pages(tmp_path, monkeypatch):
    results, lab = tmp_path / "results", tmp_path / "goals.yaml"
    years.write(results, BOARDS[:1], 6, BENCHMARKS, changed=0.0)
    lab.write_text(
        f'{BOARDS[0]}:\n  emmc_ext4 102400 write_throughput: at least 5000 MB/s, owner Ada\n"*":\n'
        "  boot_time_mmcsd default_rootfs boot_time: under 9.5 s, owner Bo\n"
    )
    monkeypatch.setenv("EVMPERF_GOALS", str(lab))
    site.write(tmp_path / "public", SpoolFolder(results))
    for page in ("index.html", f"{BOARDS[0]}/index.html"):
        text = (tmp_path / "public" / page).read_text()
        assert "1 goal missed (owner Ada)" in text
        assert re.search(
            r"missed</span>: .*eMMC ext4, 100 KiB, write [\d.]+ MB/s, at least 5000 MB/s \(o", text
        )
        assert "not measured</span>" in text
