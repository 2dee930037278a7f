"""The site of trends, opened as a person does: from the file system, on a phone, in the dark."""

import json
import re
import shutil
from statistics import fmean
from urllib.parse import unquote, urlsplit

import pytest
from playwright.sync_api import expect

from evmperf.judge.accepted import Accepted
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import SpoolFolder
from evmperf.publish import site
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
