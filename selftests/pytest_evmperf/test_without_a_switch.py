"""Sessions on a board without a power switch: a person on a terminal, and nobody at all."""

import json
import re
import sys
import threading
import time

import pexpect
import pytest
import yaml

from evmperf.boards.board import ENV_DIR
from evmperf.measure.hostload import slowness
from evmperf.model.exits import ExitStatus
from selftests.support import programs
from selftests.support.texts import PANIC


@pytest.fixture
def fake(fake):
    """It is on."""
    fake.pace_s = 0.1
    fake.switch(True)
    return fake


def command(folder, board, power, *options):
    """pytest on the scripted board, whose file has these power drivers."""
    data = yaml.safe_load((ENV_DIR / "am64x.yaml").read_text().replace("!template ", ""))
    main = data["targets"]["main"]
    main["features"] = ["boot", "crypto"]
    main["resources"] = {
        "NetworkSerialPort": {"host": "127.0.0.1", "port": board.port, "protocol": "raw", "speed": 10_000_000}
    }
    main["drivers"] = {
        **power,
        "StampedSerialDriver": {},
        "EvmUBootDriver": {},
        "EvmShellDriver": {"login_timeout": 5, "await_login_timeout": 1},
        "K3BootStrategy": {"roots": {}, "retries": 0, "uboot_timeout": 10},
    }
    file = folder / "desk.yaml"
    file.write_text(yaml.safe_dump(data, sort_keys=False))
    words = [sys.executable, "-m", "pytest", "--lg-env", str(file), "--profile", "quick"]
    return [*words, f"--results={folder / 'results'}", "-p", "no:cacheprovider", *options]


def results(folder):
    (run,) = (folder / "results").glob("*/run.json")
    lines = (run.parent / "results.jsonl").read_text().splitlines()
    return json.loads(run.read_text()), [json.loads(line) for line in lines]


def test_a_person_makes_cold_boots_until_it_is_enough(tmp_path, fake):
    words = command(tmp_path, fake, {"ManualPowerDriver": {}}, "-k", "default_rootfs", "--boots=5")
    folder, within_s = str(ENV_DIR.parent), 120 * slowness()
    person = pexpect.spawn(words[0], words[1:], cwd=folder, encoding="utf-8", timeout=within_s)
    for word, on in [("OFF", False), ("ON", True)] * 2:
        person.expect(f"Switch the board {word}")
        fake.switch(on)
    person.expect("Switch the board OFF")
    person.sendline("s")
    person.expect(pexpect.EOF)
    person.close()
    assert person.exitstatus == 0, person.before
    run, lines = results(tmp_path)
    assert run["facts"]["power"] == "hand"
    (boot_time,) = [line for line in lines if line.get("benchmark") == "boot_time_mmcsd"]
    assert boot_time["status"] == "measured"
    metrics = [sample["metric"] for sample in boot_time["samples"]]
    assert metrics.count("boot_time") == 2
    assert "power_to_output" not in metrics, "a person's hand has no time stamp"
    assert "counted_from" not in boot_time["conditions"], "they are cold boots"
    assert boot_time["conditions"]["boots"].startswith("2 of 5")
    assert fake.is_on  # nobody was asked to pull the plug at the end


def test_where_nobody_can_be_asked_that_is_said(tmp_path, fake):
    words = command(tmp_path, fake, {"ManualPowerDriver": {}}, "-k", "default_rootfs")
    done = programs.run(*words)
    assert done.returncode == ExitStatus.LAB_BROKEN
    assert "standard input is closed" in done.stdout


OWN = """
from evmperf.benchmarks import catalogue

BENCHMARK = catalogue.benchmark("openssl_throughput")

def test_figure(measure):
    measure(BENCHMARK, BENCHMARK.cases("quick")[0])

def test_lamp(measuring):
    assert False, "the lamp is off"

def test_fan(shell):
    for n in range(9):
        shell.run(f"echo {n}; false")
    assert shell.run_check("echo 900") == ["1000"]

def test_that_works(measuring):
    pass
"""
"""A lab's own suite."""


@pytest.fixture
def own(tmp_path, fake):
    """A function that runs that suite on a board without any power, which is there: its process."""
    fake._come_up()
    file = tmp_path / "test_own.py"
    file.write_text(OWN)

    def run(*words):
        return programs.run(*command(tmp_path, fake, {}, "--lg-initial-state", "shell", *words))

    return run


def test_what_needs_no_boot_is_measured_beside_a_labs_own_tests(own, tmp_path, fake):
    keyword = "default_rootfs or (openssl_throughput and aes-128-cbc and 16384) or test_own"
    done = own("-k", keyword, "--catalogue", str(tmp_path / "test_own.py"))
    assert done.returncode == 1, done.stdout
    assert "All measured: 2 of 2 cases measured on am64xx-hsevm; 2 other tests failed." in done.stdout
    run, lines = results(tmp_path)
    assert run["facts"]["power"] == "none"
    assert [x["status"] for x in lines if x.get("benchmark")] == ["measured", "measured"]
    assert fake.switched == [True]
    # A failing test shows its commands and answers in ten lines.
    shown = done.stdout.partition("_ test_fan _")[2].partition("- the board -")[2]
    power, *said = re.split(r"\n(?:===|___|- generated)", shown)[0].splitlines()[1:]
    assert power.startswith("power: ")
    answered = [line for n in (7, 8) for line in (f"$ echo {n}; false", str(n), "(exit status 1)")]
    (log,) = tmp_path.glob("results/*/console.log")
    assert said == [*answered, "$ echo 900", "900", f"All that was said: {log}"]
    assert "MARKER" not in done.stdout


def test_a_labs_own_test_alone_is_no_failure(own, tmp_path):
    done = own(f"{tmp_path / 'test_own.py'}::test_that_works")
    assert done.returncode == 0, done.stdout
    assert "measured on am64xx-hsevm." in done.stdout


def test_a_board_that_dies_ends_the_session_with_what_was_measured(tmp_path, fake):
    """Nothing here can switch it: no further case waits."""
    fake._come_up()
    words = command(tmp_path, fake, {}, "--lg-initial-state", "shell", "-k", "openssl_throughput")

    def die():
        while fake.is_on and not any("measured" in line["status"] for line in _results(tmp_path)):
            time.sleep(0.1)
        fake._state = "dead"
        fake.say(PANIC)  # in silence the tool's whole time would pass

    killer = threading.Thread(target=die)
    killer.start()
    done = programs.run(*words)
    killer.join()
    assert done.returncode == ExitStatus.FAILED, done.stdout
    run, _ = results(tmp_path)
    cases = _results(tmp_path)
    failures = [one["failures"][0]["message"] for one in cases if one["status"] == "failed"]
    waited = [message for message in failures if not message.startswith("not tried: ")]
    assert len(cases) == 24
    assert 0 < len(failures) < 24
    assert len(waited) <= 2  # the case that was cut, and the look after it
    assert "kernel panic" in run["facts"]["broken"]
    assert fake.switched == [True]


def _results(folder):
    files = (folder / "results").glob("*/results.jsonl")
    lines = [line for file in files for line in file.read_text().splitlines()]
    return [one for one in map(json.loads, lines) if one.get("benchmark") == "openssl_throughput"]
