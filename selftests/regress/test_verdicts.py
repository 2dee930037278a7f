"""Judging runs: a planted loss is found, a repeat is silent, unlike things are not compared."""

import errno
import fcntl
import json
import re
import shlex
import shutil
import xml.etree.ElementTree as ET

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from evmperf.commands.cli import main as cli
from evmperf.commands.cli.main import main
from evmperf.judge import against, judge, singles
from evmperf.judge.against import judged, parse
from evmperf.judge.published.releases import BASELINES
from evmperf.measure.runs import spool
from evmperf.measure.runs.history import SpoolFolder
from evmperf.measure.runs.spool import RECORDS
from evmperf.model.exits import ExitStatus
from evmperf.model.figures import Key, figures
from evmperf.model.results import Sample
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome
from evmperf.publish.report import page
from selftests.support import runs
from selftests.support.spools import a_case

LOST = ("emmc_ext4", "102400", "write_throughput")


@pytest.fixture(scope="module")
def nights(tmp_path_factory):
    """Twenty nights, and ten nights with a loss of 5 % in one metric."""
    folder = tmp_path_factory.mktemp("results")
    generator = runs.history(folder, seed=2)
    for number in range(20, 30):
        runs.write(folder, runs.results(generator, changed={LOST: 0.95}), number=number)
    return folder


@pytest.fixture
def lost(nights):
    """The last of them."""
    return nights / "am64xx-hsevm-0029"


@pytest.fixture
def marks(tmp_path, monkeypatch):
    """The accepted changes of a lab's folder: a link into another, which stays one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "baselines").mkdir()
    link = tmp_path / "baselines" / "accepted.yaml"
    link.symlink_to(tmp_path / "kept.yaml")
    yield link
    assert link.is_symlink()


def check(folder, against, results):
    return judged(folder, parse(against), SpoolFolder(results))


def worse(judgement):
    return [v.key for v in judgement.verdicts if v.outcome is Outcome.WORSE]


def test_a_loss_of_five_percent_is_found_and_dated(nights, lost):
    judgement = check(lost, "last:40", nights)
    assert worse(judgement) == [LOST]
    assert judgement.exit_status == 1
    first = judgement.verdicts[0]
    assert first.outcome is Outcome.WORSE
    assert first.change == pytest.approx(-0.05, abs=0.03)
    assert first.since in {f"am64xx-hsevm-{number:04}" for number in range(20, 30)}


def test_against_one_run_a_tenth_is_found_and_a_repeat_is_silent(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    slower = ("emmc_ext4", "102400", "read_throughput")
    lost = runs.write(tmp_path, runs.results(generator, changed={slower: 0.85}), number=20)
    assert worse(check(lost, "run:am64xx-hsevm-0000", tmp_path)) == [slower]
    same = runs.write(tmp_path, runs.results(generator), number=21)
    assert worse(check(same, "run:am64xx-hsevm-0000", tmp_path)) == []


def test_of_two_single_runs_nothing_is_claimed_that_cannot_be_known(tmp_path):
    generator = runs.history(tmp_path, nights=1)
    slower = {("emmc_ext4", "102400", "read_throughput"): 0.8}
    lost = runs.write(tmp_path, runs.results(generator, changed=slower), number=1)
    judgement = check(lost, "run:am64xx-hsevm-0000", tmp_path)
    assert worse(judgement) == []
    (verdict,) = [v for v in judgement.verdicts if v.key in slower]
    assert "its scatter is unknown" in verdict.why
    assert verdict.change == pytest.approx(-0.2, abs=0.1)


def test_several_runs_of_each_side(tmp_path, capsys):
    generator = runs.history(tmp_path, nights=4)
    slower = ("emmc_ext4", "102400", "read_throughput")
    for number in range(4, 8):
        runs.write(tmp_path, runs.results(generator, changed={slower: 0.7}), number=number)
    names = [f"am64xx-hsevm-{number:04}" for number in range(8)]
    sides = ["--a", *names[:4], "--b", *names[4:]]
    assert main(["compare", *sides, "--results", str(tmp_path)]) == ExitStatus.FAILED
    text = capsys.readouterr().out
    assert "1 worse" in text
    assert "No other known difference." in text
    same = ["--a", *names[:2], "--b", *names[2:4]]
    assert main(["compare", *same, "--results", str(tmp_path)]) == ExitStatus.OK


def test_the_figure_of_several_runs_is_the_one_that_is_judged():
    """The mean, as everywhere; a median beside it would be another figure than the test compared."""
    key = Key("emmc_ext4", "4k", "write_throughput")

    def side(begin, values):
        for number, value in enumerate(values, begin):
            samples = (Sample(key.metric, value, "MB/s", 0, number),)
            run = Run(f"run-{number}", "evm", "full", started_ns=number)
            yield judge.Subject(run, figures([a_case(case="4k", samples=samples)]), ())

    (verdict,) = singles.between([*side(1, (50.0, 50.2, 56.0))], [*side(4, (40.0, 40.2, 46.0))])
    assert (verdict.baseline, verdict.value) == (
        pytest.approx(52.066, abs=0.01),
        pytest.approx(42.066, abs=0.01),
    )


def test_direction_comes_from_the_catalogue(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    changed = {("boot_time_mmcsd", "default_rootfs", "boot_time"): 0.7, LOST: 1.3}
    folder = runs.write(tmp_path, runs.results(generator, changed=changed), number=20)
    judgement = check(folder, "run:am64xx-hsevm-0000", tmp_path)
    better = {v.key for v in judgement.verdicts if v.outcome is Outcome.BETTER}
    assert better >= set(changed)
    assert worse(judgement) == []


@pytest.mark.parametrize(
    ("facts", "word"),
    [
        ({"virtual": True}, "kind of board differs (virtual, not real)"),
        ({"os": "RT-linux"}, "operating system differs"),
        ({"board_revision": "E2"}, "board revision differs (E2, not E1)"),
    ],
)
@pytest.mark.parametrize("against", ["run:am64xx-hsevm-0000", "last:9"])
def test_unlike_runs_are_not_compared_and_it_says_why(tmp_path, facts, word, against):
    generator = runs.history(tmp_path, nights=9, board_revision="E1")
    other = runs.write(tmp_path, runs.results(generator), number=9, **facts)
    judgement = check(other, against, tmp_path)
    assert judgement.exit_status == ExitStatus.NOTHING
    assert all(word in v.why for v in judgement.verdicts if v.outcome is Outcome.NOT_COMPARABLE)


def test_another_profile_medium_or_tool_is_not_compared(tmp_path):
    generator = runs.history(tmp_path, nights=1, cards=[{"type": "MMC", "name": "S0J56X"}])
    cards = [{"type": "MMC", "name": "DG4016"}]
    quick = runs.results(generator, ["emmc_ext4"], profile="quick")
    folder = runs.write(tmp_path, quick, number=1, cards=cards)
    (why,) = {
        v.why for v in check(folder, "run:am64xx-hsevm-0000", tmp_path).verdicts if v.key.case in {"102400"}
    } or {""}
    assert "media model differs (DG4016, not S0J56X)" in why
    assert "profile differs (quick, not full)" in why


def test_published_artefacts_are_shown_and_not_judged():
    folder = "guide-11.01.16.13-Linux-am62lxx_evm-fs"
    judgement = check(BASELINES / folder, "release:11.00.00.00", BASELINES)
    by_key = {v.key: v for v in judgement.verdicts}
    wrong = by_key["lmbench", "bw_mem-cp-1mb", "perf"]
    assert wrong.outcome is Outcome.NOT_JUDGED
    assert "mean of two operations" in wrong.why
    assert ("ospi_ubifs", "524288", "read_throughput") in worse(judgement)
    # A tenth of what the board's other releases have.
    tenth = by_key["ospi_raw_read", "50", "read_throughput"]
    assert tenth.outcome is Outcome.NOT_JUDGED
    assert "decimal point" in tenth.why


def test_a_guide_is_a_baseline_of_the_command(nights, lost, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["guide", "--release", "12.00", "--from", str(nights), "-o", "guide.rst"]) == 0
    command = ["check", str(lost), "--against", "guide:guide.rst", "--dry-run", "--results", str(nights)]
    assert cli.main(command) == ExitStatus.OK
    assert "guide:guide.rst" in capsys.readouterr().out


def test_published_files_of_another_program_are_not_compared(tmp_path):
    generator = runs.history(tmp_path, nights=0)
    found = runs.results(generator, ["emmc_ext4"])
    folder = runs.write(tmp_path, found, number=1, release="11.00", os="RT-linux")
    judgement = check(folder, "release:11.00", tmp_path)
    assert judgement.exit_status == ExitStatus.NOTHING
    assert "tool differs (fio, not filesystem_tests)" in judgement.verdicts[0].why


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_an_accepted_change_is_not_worse(nights, lost, marks, capsys, monkeypatch):
    since = "am64xx-hsevm-0020"
    arguments = ["--results", str(nights)]
    command = ["check", "--accept", "emmc_ext4/102400/*", "--since", since, "--why", "new driver"]
    assert cli.main([*command, *arguments]) == 0
    assert "since: am64xx-hsevm-0020" in marks.read_text()
    judgement = check(lost, "last:40", nights)
    assert worse(judgement) == []
    assert judgement.exit_status == 0
    one = check(lost, "run:am64xx-hsevm-0003", nights)
    assert "accepted since am64xx-hsevm-0020: new driver" in {v.why for v in one.verdicts}
    with monkeypatch.context() as disk:
        disk.setattr(spool.os, "fsync", full)
        assert cli.main([*command[:2], "emmc_raw_fio_1g", *command[3:], *arguments]) == ExitStatus.LAB_BROKEN
    assert "emmc_raw" not in marks.read_text(), "a full disk takes no earlier mark"
    command[2] = "emcm_ext4"
    assert cli.main([*command, *arguments]) == ExitStatus.USAGE
    assert "did you mean emmc_ext4?" in capsys.readouterr().err


def test_every_format_says_the_same(nights, lost, tmp_path, capsys, marks):
    files = {name: tmp_path / name for name in ("json", "junit", "markdown", "openmetrics")}
    options = [f"--{name}={file}" for name, file in files.items()]
    words = ["check", lost.name, "--against", "last:40", "--results", str(nights)]
    status = cli.main([*words, *options])
    assert status == 1
    assert "worse    emmc_ext4  102400" in capsys.readouterr().out
    data = json.loads(files["json"].read_text())
    assert data["counts"]["worse"] == 1
    assert data["verdicts"][0]["metric"] == "write_throughput"
    suite = ET.parse(files["junit"]).getroot()
    assert suite.get("failures") == "1"
    assert len(suite.findall("testcase/failure")) == 1
    assert "| **worse** | eMMC ext4, 100 KiB, write |" in files["markdown"].read_text()
    families = text_string_to_metric_families(files["openmetrics"].read_text())
    samples = [sample for family in families for sample in family.samples]
    worse = {"board": "am64xx-hsevm", "verdict": "worse"}
    assert [s.value for s in samples if s.name == "evmperf_verdicts" and s.labels == worse] == [1]


def test_a_run_elsewhere_is_judged_by_those_beside_it(lost, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert cli.main(["check", str(lost), "--dry-run"]) == ExitStatus.FAILED


def test_of_several_runs_each_is_judged_and_the_gravest_end_counts(nights, lost, capsys, tmp_path):
    results = ["--results", str(nights), "--against", "last:40", "--dry-run"]
    names = [lost.name, "no-such-run"]
    assert cli.main(["check", *names, *results]) == ExitStatus.USAGE
    said = capsys.readouterr()
    assert "worse    emmc_ext4  102400" in said.out
    assert "no-such-run: " in said.err
    assert cli.main(["check", *names, *results, "--json", str(tmp_path / "file")]) == ExitStatus.USAGE
    assert "verdicts is for one run" in capsys.readouterr().err


def test_the_verdicts_of_a_run_at_work_or_of_a_guide_are_not_kept(tmp_path, capsys, marks):
    generator = runs.history(tmp_path, nights=6)
    folder = runs.write(tmp_path, runs.results(generator), number=6)
    names = {file.name for file in folder.iterdir()}
    with (folder / RECORDS).open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        cli.main(["check", str(folder), "--against", "last:5", "--results", str(tmp_path)])
    assert "is still being measured" in capsys.readouterr().err
    assert {file.name for file in folder.iterdir()} == names
    guide = "guide-11.01.16.13-Linux-am62lxx_evm-fs"
    folder = shutil.copytree(BASELINES / guide, tmp_path / guide)
    names = {file.name for file in folder.iterdir()}
    words = ["check", str(folder), "--against", "release:11.00.00.00", "--confirm", "30m"]
    assert cli.main(words) == ExitStatus.FAILED
    assert "no earlier good run" in capsys.readouterr().out
    assert {file.name for file in folder.iterdir()} == names


def test_what_else_changed_stands_with_what_is_worse(tmp_path, capsys, marks):
    """Each night has an image of its own: named are the last good night's and the first bad one's."""
    results = tmp_path / "results"
    generator = runs.history(results, nights=0)
    for number in range(12):
        runs.write(results, runs.results(generator), number=number, release=f"nightly-{number}")
    for number in range(12, 22):
        changed = {("emmc_ext4", "102400", "write_throughput"): 0.7}
        lost = runs.results(generator, changed=changed)
        folder = runs.write(results, lost, number=number, release=f"nightly-{number}")
        run = json.loads((folder / "run.json").read_text())
        run["facts"] |= {"kernel": "6.18.1", "command_line": "quiet mitigations=auto"}
        run["facts"]["found"] = {f"thing {number}": "new" for number in range(9)}
        (folder / "run.json").write_text(json.dumps(run))
    note = tmp_path / "note.md"
    command = ["check", str(folder), "--against", "last:40", "--results", str(results)]
    assert cli.main([*command, "--markdown", str(note)]) == 1
    said = capsys.readouterr().out
    assert "nightly-11 in A, nightly-12 in B" in said
    assert re.search(r"and \d+ more lines \(--all\)", said)
    for text in (said, note.read_text(), (folder / "report.html").read_text()):
        assert "mitigations" in text
    assert (folder / page.CHANGED).read_text()
    assert cli.main(["check", str(folder), "--against", "last:1", "--results", str(results)]) != 1
    assert not (folder / page.CHANGED).exists(), "nothing worse, so nothing changed"
    # What decides nothing leaves the page.
    assert "mitigations" in (folder / "report.html").read_text().partition("Board and")[0]
    (folder / page.CHANGED).mkdir()
    capsys.readouterr()
    assert cli.main(command) == ExitStatus.USAGE
    assert "nightly-11 in A" in capsys.readouterr().out, "what cannot be kept is told"


def test_what_began_in_one_night_is_one_cause_and_says_size_age_last_good_run_and_what_differs(
    tmp_path, capsys, marks
):
    generator = runs.history(tmp_path, nights=30, kernel="6.12.1")
    keys = [Key("emmc_ext4", case, f"{way}_throughput") for case in _CASES for way in ("read", "write")]
    slower = {**dict.fromkeys(keys, 0.7), ("boot_time_mmcsd", "default_rootfs", "boot_time"): 1.42}
    for number, age in ((30, "new tonight"), (31, "night 2"), (32, "night 3")):
        found = runs.results(generator, changed=slower)
        folder = runs.write(tmp_path, found, number=number, kernel="6.18.1", governor="schedutil")
        assert main(["check", str(folder), "--results", str(tmp_path)]) == ExitStatus.FAILED
        rows, more, cause = re.split(r"^(\d more.*)\n", capsys.readouterr().out, flags=re.MULTILINE)
        assert rows.count("\nworse ") == 6
        assert "--all" in more
        assert re.search(r"worse, median (29|30|31)\.\d %", cause)
        for told in (
            age,
            "from am64xx-hsevm-0029 (A) to am64xx-hsevm-0030 (B)",
            "good run am64xx-hsevm-0029",
            "kernel differs (6.12.1 to 6.18.1)",
            "governor differs (performance to schedutil)",
        ):
            assert told in cause
        command = shlex.split(cause.partition("next: evmperf ")[2].partition("\n")[0])
        assert main(command) == ExitStatus.OK
    (told,) = check(folder, "last:40", tmp_path).causes
    assert {*map(tuple, told.members)} == {*map(tuple, slower)}


_CASES = ("102400", "262144", "524288", "1048576")


def test_runs_that_measured_nothing_or_were_cut_short_are_no_hindrance(tmp_path):
    generator = runs.history(tmp_path, nights=8)
    (tmp_path / "am64xx-hsevm-0003" / "results.jsonl").unlink()
    cut = tmp_path / "am64xx-hsevm-0005" / "results.jsonl"
    cut.write_bytes(cut.read_bytes()[:-20])
    last = runs.write(tmp_path, runs.results(generator), number=8)
    judgement = check(last, "last:8", tmp_path)
    assert judgement.count(Outcome.SAME) > 40
    assert worse(judgement) == []


def test_the_other_boards_of_the_same_night_are_no_history(tmp_path):
    generator = runs.history(tmp_path, nights=10)
    tonight = {"night": "night-kind-20260901T220000Z"}
    lost = runs.write(tmp_path, runs.results(generator, changed={LOST: 0.5}), number=20, **tonight)
    alone = check(lost, "last:8", tmp_path)
    assert worse(alone) == [LOST]
    for number in range(11, 19):
        runs.write(tmp_path, runs.results(generator, changed={LOST: 0.5}), number=number, **tonight)
    assert check(lost, "last:8", tmp_path) == alone
    # Those of another night are.
    runs.write(tmp_path, runs.results(generator), number=19, night="night-kind-20260831T220000Z")
    assert check(lost, "last:8", tmp_path) != alone


def test_two_runs_of_one_night_share_the_date_of_an_alarm(tmp_path):
    generator = runs.history(tmp_path, nights=20)
    for number, night in ((20, "one"), (21, "one"), (22, "two"), (23, "three")):
        found = runs.results(generator, changed={LOST: 0.5})
        folder = runs.write(tmp_path, found, number=number, night=night)
        judgement = check(folder, "last:20", tmp_path)
        against.keep(folder, judgement)
        (cause,) = [cause for cause in judgement.causes if LOST in cause.members]
        assert (cause.since, cause.good) == ("am64xx-hsevm-0020", "am64xx-hsevm-0019")


def test_a_first_run_says_how_many_are_needed(tmp_path):
    runs.history(tmp_path, nights=1)
    judgement = check(tmp_path / "am64xx-hsevm-0000", "last:30", tmp_path)
    assert {v.why for v in judgement.verdicts if v.outcome is Outcome.NOT_COMPARABLE} == {
        "first run: 5 are needed"
    }
    assert judgement.exit_status is ExitStatus.NOTHING
    assert judgement.headline == "nothing comparable"
