"""References of boots: ranges of phases and initcalls, and what of a run is outside of them."""

import json
import random
import re

import pytest
import yaml

from evmperf.boards.board import ENV_DIR
from evmperf.commands.cli.main import main
from evmperf.model.exits import ExitStatus
from selftests.support import bootruns, programs
from selftests.support.boardfiles import console_and_power
from selftests.support.bootruns import LOADER


def boots(chance, count, slower=1.0, names=range(40)):
    """Boots of initcalls that vary by one percent each, c17 slower by a factor, read after the prompt."""
    for _ in range(count):
        calls = {n: 3000 * (n + 1) * chance.gauss(1, 0.01) * (slower if n == 17 else 1) for n in names}
        lines = [
            f"[    0.{n:06d}] initcall c{n}_init+0x0/0x8 [c{n}] returned 0 after {us:.0f} usecs\r\n"
            for n, us in calls.items()
        ]
        yield (
            *LOADER,
            (1.5, "[    0.000000] Booting Linux\r\n"),
            (1.9, "[    0.500000] Run /sbin/init as init process\r\n"),
            (1.9 + chance.gauss(2, 0.02), "\r\nboard login: "),
            (6.0, f"root\r\n# dmesg\r\n{''.join(lines)}# "),
        )


@pytest.fixture
def ref(tmp_path):
    """A reference of twenty boots."""
    good = bootruns.written(tmp_path / "good", [*boots(random.Random(5), 20)], "good", kernel="6.12")
    file = tmp_path / "j7.ref"
    assert main(["export", str(good), "--reference", str(file)]) == 0
    return file


@pytest.fixture
def checked(tmp_path, ref, capsys):
    """A function that checks a run of such boots: exit status, and what is said."""

    def check(said, name="r", file=ref, **facts):
        folder = bootruns.written(tmp_path / name, [*said], name, **facts)
        status = main(["check", str(folder), "--reference", str(file)])
        return status, "".join(capsys.readouterr())

    return check


def test_an_initcall_five_percent_slower_is_named_within_three_boots(checked):
    chance = random.Random(7)
    for trial in range(5):
        status, text = checked(boots(chance, 3, 1.05), f"slow{trial}")
        assert (status, text.count("slower: ")) == (ExitStatus.FAILED, 1)
        assert "slower: initcall c17_init [c17] took 0.05" in text
        assert "s in 20 boots" in text


def test_two_hundred_unchanged_boots_raise_nothing(checked):
    chance = random.Random(6)
    said = [checked(boots(chance, 3), f"r{n}") for n in range(67)]
    assert [status for status, _ in said] == [ExitStatus.OK] * 67
    assert all("slower: " not in text for _, text in said)
    parts, telling = re.search(r"3 boots, (\d+) parts, .* would show in (\d+) of them", said[0][1]).groups()
    assert int(telling) >= int(parts) - 2 >= 36


def test_parts_that_are_new_or_gone_are_named_and_another_kernel_is_said(checked):
    status, text = checked(boots(random.Random(8), 3, names=[*range(10), *range(11, 40), 50]), kernel="6.18")
    assert status == ExitStatus.FAILED
    assert "kernel '6.18', not '6.12' as in the reference" in text
    assert "new: initcall c50_init [c50] took 0.15" in text
    assert "gone: initcall c10_init [c10]" in text


def test_a_boot_that_is_slower_throughout_is_said_to_be(checked):
    slow = [
        [(at_s, text.replace(" after ", " after 1")) for at_s, text in said]
        for said in boots(random.Random(9), 3)
    ]
    assert "as a whole" in checked(slow)[1]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"board": "am64xx-hsevm"}, "is of am64xx-hsevm"),
        ({"format": "evmperf-reference/9"}, "is no reference of boots"),
        ({"cases": {"boot_time_mmcsd default_rootfs": [{"part": "x"}]}}, "is no reference of boots"),
        ({"cases": {"other": []}}, "no boots of a case"),
    ],
)
def test_a_file_that_does_not_fit_is_refused_by_its_name(checked, ref, changed, said):
    ref.write_text(json.dumps(json.loads(ref.read_text()) | changed))
    status, text = checked(boots(random.Random(1), 3))
    assert status == (ExitStatus.NOTHING if "other" in str(changed) else ExitStatus.USAGE)
    assert said in text


def test_too_few_boots_make_no_reference_and_no_verdict(checked, tmp_path, capsys):
    few = bootruns.written(tmp_path / "few", [*boots(random.Random(2), 9)], "few")
    words = ["export", "few", "--results", str(few.parent), "--reference", str(tmp_path / "few.ref")]
    assert main(words) == ExitStatus.USAGE
    assert "there are 9:" in capsys.readouterr().err
    status, text = checked(boots(random.Random(3), 2))
    assert (status, "3 boots with a console are needed" in text) == (ExitStatus.UNDECIDED, True)


def test_a_session_says_which_parts_of_its_boots_are_outside(tmp_path, fake, switch):
    data = yaml.safe_load((ENV_DIR / "virtual.yaml").read_text())
    main = data["targets"]["main"]
    main["features"] = ["boot"]
    main["resources"] |= console_and_power(fake.port, switch.port)
    main["drivers"]["K3BootStrategy"] |= {"roots": {}, "retries": 0, "media": {"virtio": ["setenv mmcdev 1"]}}
    del main["options"]["board"]["virtual"]
    (tmp_path / "desk.yaml").write_text(yaml.safe_dump(data, sort_keys=False))
    ranges = [
        {"part": part, "clock": "console", "low_s": 0, "median_s": s, "high_s": s, "boots": 20}
        for part, s in (("init_started", 0.0001), ("power_on", 3000))
    ]
    whole = {"format": "evmperf-reference/1", "board": "virtual-evm", "conditions": {}, "runs": []}
    whole["cases"] = {"boot_time_mmcsd default_rootfs": ranges}
    (tmp_path / "j7.ref").write_text(json.dumps(whole))
    fake.pace_s = 0.1
    words = ["-k", "default_rootfs", "--boots=3", f"--reference={tmp_path / 'j7.ref'}"]
    done = programs.pytest(
        "--lg-env", str(tmp_path / "desk.yaml"), f"--results={tmp_path / 'results'}", *words
    )
    assert done.returncode in (ExitStatus.FAILED, ExitStatus.UNDECIDED), done.stdout  # on a busy host
    assert "slower: init_started took" in done.stdout
    assert "faster: power_on" not in done.stdout
