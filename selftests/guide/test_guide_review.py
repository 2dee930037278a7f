"""What a review asks of guides: planted faults, real repairs, and files that are no guides."""

import json
import re

import numpy as np
import pytest
from evmperf_guides import importer, moves, review
from msgspec.structs import replace

from evmperf.commands.cli import main as cli
from evmperf.judge.published import record
from evmperf.model import plugins
from selftests.instruments import record as recorder
from selftests.instruments import review as instrument
from selftests.support import runs, seeds

TABLES = ("emmc_ext4", "emmc_vfat", "emmc_raw_fio_1g", "uboot_emmc_raw", "lmbench", "openssl_throughput")
NAMED, FEW, WORST = 0.6, 5, 12


def measured(seed):
    """Results of a release: each case at its own level, within 1 %."""
    plain = runs.results(np.random.default_rng(seed), TABLES)
    return [runs.scaled(result, 1.0 + 0.37 * number) for number, result in enumerate(plain)]


def written(folder, release, found):
    """The guide that evmperf writes of some results."""
    runs.write(folder / release, found, board="virtual-evm", virtual=True, release=release)
    file = folder / f"{release}.rst"
    assert cli.main(["guide", "--release", release, "--from", str(folder / release), "-o", str(file)]) == 0
    return file


def unit(new, old):
    return [runs.scaled(r, 1000.0) if r.benchmark == "emmc_raw_fio_1g" else r for r in new]


def exchanged(new, old):
    one, other = [n for n, r in enumerate(new) if r.benchmark == "lmbench"][:8:7]
    new[one], new[other] = (
        replace(
            new[a],
            samples=tuple(
                replace(s, unit=t.unit) for s, t in zip(new[b].samples, new[a].samples, strict=True)
            ),
        )
        for a, b in ((one, other), (other, one))
    )
    return new


def copied(new, old):
    return [old[n] if r.benchmark == "emmc_vfat" else r for n, r in enumerate(new)]


def half(new, old):
    return [r for r in new if r.benchmark not in TABLES[:3]]


def noise(new, old):
    def wide(result):
        samples = (replace(s, value=s.value * (0.4, 1.0, 1.8)[n % 3]) for n, s in enumerate(result.samples))
        return replace(result, samples=tuple(samples))

    number = next(n for n, r in enumerate(new) if r.benchmark == "openssl_throughput")
    return [wide(r) if n == number else r for n, r in enumerate(new)]


FAULTS = {"jump": unit, "exchanged": exchanged, "copied": copied, "missing": half, "noise": noise}


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    found = measured(1)
    return found, written(tmp_path_factory.mktemp("old"), "11.00", found)


@pytest.mark.parametrize("kind", ["", *FAULTS])
def test_a_planted_fault_is_asked_about_and_a_healthy_guide_is_not(kind, old, tmp_path, capsys):
    found, before = old
    new = measured(2)
    file = written(tmp_path, "12.00", FAULTS[kind](new, found) if kind else new)
    status = cli.main(["guide", "review", str(file), str(before), "--json", "-"])
    remarks = json.loads(capsys.readouterr().out)["remarks"]
    assert {one["kind"] for one in remarks if not one["folded"]} == ({kind} if kind else set())
    assert status == bool(kind)


def test_what_pages_show_wrongly_is_asked_about(old, tmp_path, capsys):
    _, before = old
    file = written(tmp_path, "12.00", measured(2))
    text = file.read_text()
    title = re.search(r"^(\S.*)\n-{4,}\n", text, re.MULTILINE)
    file.write_text(f"{text}\n{title[0]}\nToo long a title\n-------\n\nWords\n")
    assert cli.main(["guide", "review", str(file), str(before)]) == 1
    at, line = text.count("\n", 0, title.start()) + 1, text.count("\n") + 2
    said = capsys.readouterr().out
    assert (
        f"line {line}: {title[1]}: a title, its section has the title {title[1]!r} in line {at}, too: "
        in said
    )
    assert "Title underline too short" in said


def recorded(monkeypatch, file, board="virtual-evm"):
    """Let the record have the figures of one guide."""
    moves.known()  # of the record that is there
    found = [replace(entry, board=board) for entry in recorder.entries(file)]
    monkeypatch.setattr(record, "entries", lambda file=None: tuple(found))


@pytest.mark.parametrize(("until", "kinds"), [("", {"elsewhere"}), ("2026-01-01", set())])
def test_a_figure_that_another_guide_of_the_release_has_otherwise_is_asked_about(
    until, kinds, tmp_path, monkeypatch
):
    file, other = written(tmp_path, "12.00", measured(2)), tmp_path / "guide.2026-01-01.rst"
    imported, text = importer.load(file)[0], file.read_text()
    figure = imported.results["virtual-evm"][0].published[0]
    lines = text.split("\n")
    lines[figure.line - 1] = re.sub('","[^"]*"$', f'","{2 * figure.mean:.2f}"', lines[figure.line - 1])
    other.write_text("\n".join(lines))
    recorded(monkeypatch, other)
    found = [(one.kind, one.line) for one in review.review(imported, text, until=until).remarks]
    assert [one for one in found if one[0] != "evidence"] == [(kind, figure.line) for kind in kinds]


@pytest.mark.parametrize(("factor", "tables"), [(1.0, set()), (0.01, {"openssl_throughput"})])
def test_a_board_without_history_is_held_against_its_nearest_relative(
    factor, tables, old, tmp_path, monkeypatch
):
    new = [runs.scaled(r, factor) if r.benchmark == "openssl_throughput" else r for r in measured(2)]
    file = written(tmp_path, "12.00", new)
    imported, text = importer.load(file)[0], file.read_text()
    recorded(monkeypatch, old[1], "relative-evm")
    jumps = [one for one in review.review(imported, text).remarks if one.kind != "evidence"]
    assert {one.table for one in jumps} == tables
    assert all("of relative-evm" in one.against for one in jumps)


def test_it_is_shown_as_lines_a_page_and_for_a_merge_request(old, tmp_path, capsys):
    found, before = old
    file = written(tmp_path, "12.00", unit(measured(2), found))
    page = tmp_path / "page.html"
    assert cli.main(["guide", "review", str(file), str(before), "--markdown", "-", "--html", str(page)]) == 1
    text = capsys.readouterr().out
    assert "1. virtual-evm emmc\\_raw\\_fio\\_1g" in text or "1. virtual-evm emmc_raw_fio_1g" in text
    assert "is it expected?" in page.read_text()
    assert cli.main(["guide", "review", str(file), str(before)]) == 1
    assert "12.00, virtual-evm: 1 question" in capsys.readouterr().out


def test_what_runs_make_is_reviewed_before_it_is_published(tmp_path, capsys):
    runs.write(tmp_path, noise(measured(2), ()), board="virtual-evm", virtual=True, release="12.00")
    words = ["guide", "--release", "12.00", "--from", str(tmp_path), "--review"]
    assert cli.main([*words, "-o", str(tmp_path / "g.rst")]) == 1
    assert "pytest --lg-env BOARD.yaml -k " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda text: "diff --git a/x b/x\n" + text, "line 1: is a patch"),
        (lambda text: text.replace("eMMC", "eMMC", 1) + "\n<<<<<<< HEAD\n", "has conflict markers"),
        (lambda text: text.replace("Linux 12.00 ", "", 1), "states no release"),
        (lambda text: text.replace("Linux 12.00 ", "Linux 10.00 ", 1), "not older than 10.00"),
        (lambda text: text.replace("virtual-evm", "am64xx-hsevm"), "older guide of the same board"),
        (lambda text: text.partition(".. csv-table")[0], "has no csv-table"),
        (lambda text: text + " " * 5_000_000, "is larger than 4 MiB"),
    ],
)
def test_what_cannot_be_reviewed_is_one_sentence(change, said, old, tmp_path, capsys):
    file = written(tmp_path, "12.00", measured(2))
    file.write_text(change(file.read_text()))
    capsys.readouterr()
    assert cli.main(["guide", "review", str(file), str(old[1])]) == 4
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_without_the_package_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setattr(plugins, "plugins", lambda group: {})
    for words in (["guide", "review", "x.rst"], ["import-guide", "x.rst"], ["virtual", "build"]):
        assert cli.main(words) == 4
        assert "`make setup` in a clone" in capsys.readouterr().err


@seeds.needs("real/guide-repairs")
def test_most_repaired_rows_were_asked_about_before_and_few_of_others(capsys):
    instrument.main([])
    *_, late, _, others, _ = capsys.readouterr().out.splitlines()
    named, much = (int(n) for n in late.split(", ")[1].split(" (")[0].split(" of "))
    assert late.startswith("measured")
    assert named >= NAMED * much
    numbers = [float(word) for word in others.replace(":", "").split() if word.isdigit()]
    assert numbers[1] <= FEW
    assert numbers[2] <= WORST
