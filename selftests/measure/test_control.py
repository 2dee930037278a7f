"""Control metrics: the loop's program is its source, its output is read whole, and causes name the board."""

import struct
import subprocess
from pathlib import Path

import pytest

from evmperf.benchmarks import control
from evmperf.benchmarks.tools import control as loop
from evmperf.judge.causes import causes
from evmperf.model.alarm import AlarmState, MetricAlarm
from evmperf.model.errors import RefusedOutput
from evmperf.model.facts import Facts
from evmperf.model.figures import Key
from evmperf.model.results import Direction
from evmperf.model.run import Run
from evmperf.model.verdict import Outcome, Verdict


def test_the_program_is_what_its_source_says(tmp_path):
    source, made = Path(__file__).with_name("control_aarch64.s"), tmp_path / "control.o"
    subprocess.run(["aarch64-linux-gnu-as", source, "-o", made], check=True)
    whole = loop.program("aarch64")
    assert whole[0x78:] in made.read_bytes()
    assert struct.unpack_from("<Q", whole, 24) == (0x10078,)  # the entry point


def printed(form, *spans):
    return "".join("".join(f"{octet:4}" for octet in struct.pack(form, *span)) + "\n" for span in spans)


@pytest.mark.parametrize("form", ["<4q", "<4i"])
def test_every_loop_but_the_first_counts(form):
    text = printed(
        form, (1, 0, 4, 0), (5, 999_000_000, 6, 99_500_000), (7, 0, 7, 100_000_000), (8, 0, 8, 100_000_000)
    )
    assert loop.loop_ms(text) == pytest.approx([100.5, 100, 100])
    for damaged in (
        text[:-9],
        "",
        f"{text}1\n",
        "\n".join(text.splitlines()[::-1]),
        text.replace(" 0", " 300", 1),
        f"x{text}",
    ):
        with pytest.raises(RefusedOutput):
            loop.loop_ms(damaged)


def test_the_highest_temperature_is_the_idle_one():
    assert loop.celsius("41000\n0\n45250\n") == 45.25
    assert [loop.celsius(text) for text in ("", "45", "45\n", "45307", "45307\n[  9.9] mmc0\n")] == [None] * 5


def test_a_board_that_changed_is_the_first_suspect():
    def worse(benchmark, metric):
        key = Key(benchmark, "session", metric)
        alarm = MetricAlarm(AlarmState.OPEN, "run-2", "run-2", "run-1", 1, 100.0, 0.12, 0.1, 0.14, 0.01)
        return Verdict(
            key,
            Outcome.WORSE,
            "ms",
            Direction.LOWER,
            112,
            100,
            alarm=alarm,
            control=benchmark == control.NAME,
        )

    facts = Facts(kernel="6.12", host_load=0.3)
    loaded = Facts(kernel="6.18", host_load=4.0)
    runs = [Run("run-1", "evm", "full", facts=facts), Run("run-2", "evm", "full", facts=loaded)]
    (cause,) = causes([worse(control.NAME, "cpu_loop"), worse("emmc_ext4", "read_throughput")], runs)
    assert cause.suspects == [
        "the board changed: CPU loop +12.0 %, too",
        "the lab's host was loaded (4.0 processes a processor, 0.3 before)",
        "kernel differs (6.12 to 6.18)",
    ]
