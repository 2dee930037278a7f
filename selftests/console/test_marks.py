"""Boot marks, whatever the console's pieces, and what booted: by its messages, or by its answer."""

import re
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from evmperf.benchmarks.families.boot import LateStamp, readings
from evmperf.boards.console import booted
from evmperf.boards.console.marks import ObservedBoot, Phase, find, last_phase
from evmperf.boards.console.record import POWER_ANSWERED, POWER_ON, ConsoleRecord
from evmperf.boards.prompts import INIT_SHELL_PROMPT
from evmperf.model.errors import RefusedOutput
from selftests.support import programs
from selftests.support.texts import BOOT, LOGIN, SPL_BOOT, chunked

# What announces each phase, up to its last byte; the banners run to the end of their line.
ANNOUNCED = {
    Phase.SPL_BANNER: b"U-Boot SPL 2025.01-ti (Mar 01 2025 - 10:00:00 +0000)",
    Phase.UBOOT_BANNER: b"U-Boot 2025.01-ti (Mar 01 2025 - 10:00:01 +0000)",
    Phase.AUTOBOOT: b"stop autoboot",
    Phase.STARTING_KERNEL: b"Starting kernel",
    Phase.FIRST_KERNEL_LINE: b"[    0.000000]",
    Phase.ROOT_MOUNTED: b"EXT4-fs (mmcblk1p2): mounted filesystem",
    Phase.INIT_STARTED: b"systemd[1]: systemd 257.3 running",
    Phase.PROMPT: b"login: ",
}
POWERED = ConsoleRecord(1_000, 1_000, "#", POWER_ON.encode())


def record(chunks, bounds_ns=()):
    """Chunks as they arrive, one a second, after the power-on."""
    return [POWERED] + [
        ConsoleRecord((n + 1) * 10**9, (n + 1) * 10**9, "<", chunk, dict(enumerate(bounds_ns)).get(n, 0))
        for n, chunk in enumerate(chunks)
    ]


def chunk_of(chunks, position):
    """The number of the chunk that holds the byte at `position`."""
    for number, chunk in enumerate(chunks):
        if position < len(chunk):
            return number
        position -= len(chunk)
    raise AssertionError("behind the end")


@given(st.data())
def test_each_mark_is_the_chunk_of_the_last_byte_of_its_text(data):
    chunks = data.draw(chunked(SPL_BOOT))
    marks = find(record(chunks), LOGIN)
    assert list(marks) == [Phase.POWER_ON, Phase.FIRST_OUTPUT, *ANNOUNCED]
    for phase, text in ANNOUNCED.items():
        last = SPL_BOOT.index(text) + len(text) - 1
        assert marks[phase].mono_ns == (chunk_of(chunks, last) + 1) * 10**9, phase
        assert marks[phase].text.encode() == text
    first = chunk_of(chunks, SPL_BOOT.index(b"U-Boot SPL"))
    assert marks[Phase.FIRST_OUTPUT].mono_ns == (first + 1) * 10**9
    assert marks[Phase.POWER_ON].mono_ns == POWERED.mono_ns


@given(st.data())
def test_what_was_typed_announces_nothing(data):
    typed = data.draw(st.sampled_from(list(ANNOUNCED.values())))
    chunks = data.draw(chunked(BOOT))
    records = record(chunks)
    at = data.draw(st.integers(0, len(records)))
    records.insert(at, ConsoleRecord(5, 5, ">", typed))
    assert find(records, LOGIN) == find(record(chunks), LOGIN)


@given(st.integers(0, len(BOOT)))
def test_a_boot_that_stops_has_the_marks_until_there(length):
    marks = find(record([BOOT[:length]]), LOGIN)
    whole = find(record([BOOT]), LOGIN)
    assert list(marks) == [phase for phase in whole if phase in marks]
    assert (Phase.PROMPT in marks) == (length >= BOOT.index(b"login: ") + len("login: "))
    assert last_phase(marks) == list(marks)[-1]


def test_a_second_banner_after_the_kernel_does_not_move_the_first():
    start = BOOT.index(b"Starting kernel") + len("Starting kernel")
    chunks = [BOOT[:start], BOOT]
    marks = find(record(chunks), LOGIN)
    assert marks[Phase.UBOOT_BANNER].mono_ns == 10**9
    assert marks[Phase.STARTING_KERNEL].mono_ns == 10**9


def test_a_prompt_before_the_kernel_is_not_the_boots():
    assert Phase.PROMPT not in find(record([b"U-Boot 2025.01\r\nlogin: "]), LOGIN)


def test_the_echo_of_what_is_typed_after_a_prompt_does_not_hide_it():
    """The root's medium is asked for at once, in the shell that has no other line than that prompt."""
    said = [b"Starting kernel ...\r\n[    0.000000] Linux\r\n", b"job control turned off\r\n# "]
    asked = ConsoleRecord(25 * 10**8, 25 * 10**8, ">", b"[ -e /proc/cmdline ] || mount\n")
    records = record([*said, b"[ -e /proc/cmdline ] || mount\r\nend\r\n# "])
    records.insert(3, asked)
    assert find(records, INIT_SHELL_PROMPT)[Phase.PROMPT].mono_ns == 2 * 10**9


def test_a_boots_readings_are_the_spans_between_its_marks_and_off_by_what_these_are_at_most():
    marks = find(record(at_kernel_and_init(), [3 * 10**6, 15 * 10**6, 10**6]), LOGIN)
    found = {r.metric: (r.value, r.error) for r in readings(ObservedBoot("booted", "", 0, 3.0, marks))}
    assert found["boot_time"] == pytest.approx((2.0, 0.003))
    assert found["kernel"] == pytest.approx((1.0, 0.015))
    assert found["userland"][0] == pytest.approx(1.0)
    assert found["uboot"][0] == 0.0


def at_kernel_and_init():
    kernel, init = BOOT.index(b" ...", BOOT.index(b"Starting kernel")), BOOT.index(b"virtual-evm l")
    return [BOOT[:kernel], BOOT[kernel:init], BOOT[init:]]


@pytest.mark.parametrize(
    ("bounds", "phase"), [([21 * 10**6], "starting_kernel"), ([0, 0, 7 * 10**9], "prompt")]
)
def test_a_boot_time_of_a_late_stamp_is_refused(bounds, phase):
    marks = find(record(at_kernel_and_init(), bounds), LOGIN)
    with pytest.raises(LateStamp, match=f"{phase} may be {bounds[-1] // 10**6} ms off, and 20"):
        readings(ObservedBoot("booted", "", 0, 3.0, marks))
    stated = readings(ObservedBoot("booted", "", 0, 3.0, marks, measured=False))
    assert stated[0].error == bounds[-1] / 1e9
    # Elsewhere it costs the spans that need it.
    marks = find(record(at_kernel_and_init(), [0, 60 * 10**6, 0]), LOGIN)
    found = {r.metric for r in readings(ObservedBoot("booted", "", 0, 3.0, marks))}
    assert "boot_time" in found
    assert not {"kernel", "userland"} & found


@pytest.mark.parametrize(("span_s", "off_s"), [(1.0, 0.02), (2.0, 0.02), (5.0, 0.05), (18.0, 0.18)])
def test_a_mark_may_be_off_by_a_hundredth_of_its_span(span_s, off_s):
    marks = find(record(at_kernel_and_init()), LOGIN)
    start = marks[Phase.STARTING_KERNEL].mono_ns

    def readings_of(error_s):
        prompt = msgspec.structs.replace(
            marks[Phase.PROMPT], mono_ns=start + round(span_s * 1e9), error_s=error_s
        )
        return readings(ObservedBoot("booted", "", 0, 30.0, {**marks, Phase.PROMPT: prompt}))

    assert readings_of(off_s)[0].error == off_s
    with pytest.raises(LateStamp, match=f"and {off_s * 1000:.0f} ms are allowed"):
        readings_of(off_s + 0.001)


def test_the_power_came_on_before_the_switch_had_answered():
    answered = ConsoleRecord(4_000_000, 4_000_000, "#", POWER_ANSWERED.encode())
    marks = find([POWERED, answered], LOGIN)
    assert marks[Phase.POWER_ON].error_s == pytest.approx(0.003999)


@pytest.mark.parametrize("end", [b"Starting kernel", b"login: "])
def test_a_boot_without_kernel_or_prompt_has_no_boot_time(end):
    marks = find(record([BOOT.replace(end, b"")]), LOGIN)
    with pytest.raises(RefusedOutput, match="no boot time"):
        readings(ObservedBoot("booted", "", 0, 3.0, marks))


BOOTED = yaml.safe_load(Path(__file__).with_name("booted.yaml").read_text())
SET = booted.variables(BOOTED["printed"])


def test_the_environment_is_read_with_values_of_several_lines():
    found = booted.variables(BOOTED["printed"].replace("\n", "\r\n"))
    assert list(found) == ["args_all", "args_mmc", "bootcmd", "preboot", "fdt_addr_r"]
    assert found["preboot"] == "if test -n x; then\n  echo two lines\nfi"
    assert found["fdt_addr_r"] == "0x88000000"


@pytest.mark.parametrize("case", BOOTED["arguments"], ids=lambda case: case["words"])
def test_the_words_are_given_to_what_makes_the_command_line(case):
    environment = {
        name: text.replace("LONG", "y" * 1000) for name, text in case.get("environment", SET).items()
    }
    found = booted.arguments_commands(environment, "optargs", case["words"])
    assert found == [f"setenv optargs '{case['words']}'", *case["commands"]]
    assert booted.overwriting(SET, "optargs") == ["args_all"]


@pytest.mark.parametrize("case", BOOTED["roots"], ids=lambda case: case["asks"])
def test_what_the_kernel_mounted_as_root_decides_or_the_system_is_asked(case):
    card = f"1.0] mmc1: new {case.get('card', 'high speed SDHC')} card at address 1"
    asked = f"quiet root={case['asks']} rw"
    told = (f"0.0] Kernel command line: {asked}", card, "1.1] mmcblk1: mmc1:0001 X 1 GiB", *case["lines"])
    text = "".join(f"[    {line}\r\n" for line in told)
    assert booted.shown(text) == booted.BootedSystem(asked, case["root"])


def test_a_quiet_console_says_nothing():
    assert booted.shown("Starting kernel ...\r\n\r\nlogin: ") == booted.BootedSystem()
    assert booted.answered("sh: not found") == booted.BootedSystem()


def test_the_question_is_answered_by_a_real_shell():
    done = programs.run("sh", "-c", booted.QUESTION, check=True)
    words = Path("/proc/cmdline").read_text(encoding="utf-8").split()
    system = booted.answered(done.stdout)
    assert (system.arguments or "").split() == words
    assert system.root is not None
    wrong = booted.complaint("sd", "", " ".join([*words[:1], "evmperf.not_there"]), system, ())
    assert "booted without evmperf.not_there:" in str(wrong)


@pytest.mark.parametrize("case", BOOTED["changes"], ids=lambda case: case["change"])
def test_two_systems_differ_in_what_their_consoles_name(case):
    change = case["change"]
    line = "[    0.1] Kernel command line: console=ttyS2 root=/dev/mmcblk1p2 rauc.slot=A rw\r\n"
    text = BOOT.decode().replace("[    1.234567]", f"{line}[    1.234567]")
    later = text.replace(change, re.sub(r"[12A7](?=\D*$)", "9", change)) if change else text
    first = booted.identity(text)
    assert list(first) == ["U-Boot", "kernel", "root"]
    other = booted.another_system(first, booted.identity(later))
    assert [name for name in first if f"{name} is " in str(other or "")] == case["names"]
    assert booted.another_system(first, {}) is None  # a quiet boot shows nothing
