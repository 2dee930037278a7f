"""Runs on disk: absurd numbers are named, each file is read once, and what differs between runs is told."""

import json
import os
import sys
from collections import Counter

import fdt
import pytest

from evmperf.commands.cli.main import main
from evmperf.measure.runs import differences, spool
from evmperf.measure.runs.spool import Spool
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.run import Run
from selftests.support import programs, runs

ABSURD = {
    "when": ("run.json", ["started_ns"], 10**30),
    "before": ("run.json", ["started_ns"], -(10**18)),
    "after": ("run.json", ["ended_ns"], 9 * 10**18),
    "value": ("results.jsonl", ["samples", 0, "value"], 1e308),
    "tiny": ("results.jsonl", ["samples", 0, "value"], 5e-324),
    "time": ("results.jsonl", ["samples", 0, "time_ns"], 10**30),
    "error": ("results.jsonl", ["samples", 0, "error"], -1e308),
    "took": ("results.jsonl", ["duration_s"], 1e308),
}
COMMANDS = """
history --results {results}
history am64xx-hsevm --results {results}
history am64xx-hsevm emmc_ext4 --results {results}
check am64xx-hsevm-0003 --against last:3 --results {results}
compare am64xx-hsevm-0001 am64xx-hsevm-0003 --results {results}
site -o {out}/site --results {results}
guide --release newest --from {results} -o {out}/guide.rst
export --from {results} --parquet {out}/x
export --from {results} --openmetrics {out}/x
export --from {results} --junit {out}/x
export --from {results} --csv {out}/x
history --from history
"""
READERS = ("guide", "export")
"""Commands that read the records of every run."""
JUDGING = ("site", "history am64xx-hsevm")
"""Commands that read no more of them than judging does."""


@pytest.fixture(params=ABSURD)
def absurd(request, tmp_path):
    """A folder of four nights, the second with one absurd number; and the file that has it."""
    runs.history(tmp_path / "results", nights=4)
    name, way, value = ABSURD[request.param]
    file = tmp_path / "results/am64xx-hsevm-0001" / name
    first, _, rest = (file.read_text(), "", "") if name == "run.json" else file.read_text().partition("\n")
    said = json.loads(first)
    part = said
    for key in way[:-1]:
        part = part[key]
    part[way[-1]] = value
    file.write_text(f"{json.dumps(said)}\n{rest}")
    return request.param, file


def test_every_command_does_the_rest(absurd, tmp_path, capsys, caplog, monkeypatch):
    what, file = absurd
    monkeypatch.setenv("EVMPERF_HISTORY", str(tmp_path / "store"))
    for line in COMMANDS.strip().splitlines():
        if what in ("when", "before", "after") and line.startswith("compare"):
            continue  # it is the run that is compared
        spool.leave_out.cache_clear()
        caplog.clear()
        status = main([word.format(results=tmp_path / "results", out=tmp_path) for word in line.split()])
        said = capsys.readouterr()
        whole = file.name == "run.json" or (what == "value" and line.startswith(JUDGING))
        assert status in (ExitStatus.OK, ExitStatus.UNDECIDED, ExitStatus.NOTHING, ExitStatus.FAILED), said
        if what != "tiny" and (whole or line.startswith(READERS)) and "--from history" not in line:
            assert str(file.parent) in caplog.text + said.err, line


# A lock is no reading: whether a run is still measured is asked of its records' file.
COUNTING = """
import atexit, json, os, sys
opened = []
def note(event, words):
    if event == "open" and "/am64xx-" in str(words[0]) and words[2] & os.O_ACCMODE == os.O_RDONLY:
        frame = sys._getframe(1)
        while frame and frame.f_code.co_name != "is_live":
            frame = frame.f_back
        if not frame and not words[2] & os.O_DIRECTORY:
            opened.append(str(words[0]))
atexit.register(lambda: print("\\n" + json.dumps(opened)))
sys.addaudithook(note)
from evmperf.commands.cli.main import main
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.parametrize("words", ["check", "show", "why", "compare last~1 last --facts", "history"])
def test_a_command_reads_each_file_of_a_run_once(tmp_path, words):
    generator = runs.history(tmp_path / "results", nights=8)
    runs.write(tmp_path / "results", runs.results(generator), number=8)
    process = programs.run(
        sys.executable,
        "-c",
        COUNTING,
        *words.split(),
        cwd=tmp_path,
        environment={name: value for name, value in os.environ.items() if name != "EVMPERF_HISTORY"},
    )
    assert process.returncode in (0, 6), process.stdout + process.stderr
    counts = Counter(json.loads(process.stdout.splitlines()[-1]))
    assert sum(name.endswith("run.json") for name in counts) == 9, counts
    assert set(counts.values()) == {1}, counts.most_common(3)


TREE = """/dts-v1/;
/ {{
    chosen {{
        bootargs = "{arguments}";
    }};
    soc {{
        mmc@4f80000 {{
            status = "okay";
            bus-width = <{width}>;
        }};
        {more}
    }};
}};
"""
CONFIG = "CONFIG_HZ=250\nCONFIG_MMC=y\n# CONFIG_PREEMPT is not set\n"
DMESG = (
    "[    0.000000] Booting Linux on physical CPU 0x0000000000 [0x411fd040]\n"
    "[    1.204113] mmc0: new HS200 MMC card at address 0001\n"
)


@pytest.fixture
def make(tmp_path):
    """A function that makes a run with facts and documents; returns its folder."""

    def make_run(name, documents=None, **facts):
        spool = Spool(tmp_path, Run(name, "evm", "quick", facts=Facts.from_dict(facts)))
        (spool.folder / differences.FOLDER).mkdir()
        for document, text in (documents or {}).items():
            (spool.folder / differences.FOLDER / document).write_text(text)
        return spool.folder

    return make_run


def told(found):
    return [(entry.area, entry.what, entry.a, entry.b) for entry in found]


def tree(arguments="quiet", width=8, more=""):
    text = TREE.format(arguments=arguments, width=width, more=more)
    return fdt.parse_dts(text).to_dtb(version=17).hex()


def test_what_matters_comes_first(make):
    a = make(
        "a",
        {"modules": "sdhci\n"},
        kernel="6.6.1",
        tools={"fio": "3.35"},
        command_line="console=ttyS0 mitigations=off quiet",
    )
    b = make(
        "b",
        {"modules": "sdhci\nusb_storage\n"},
        kernel="6.12.1",
        tools={"fio": "3.36"},
        command_line='console=ttyS0 quiet dyndbg="file drivers/mmc/* +p"',
    )
    assert told(differences.between([a], [b])) == [
        ("kernel", "kernel", "6.6.1", "6.12.1"),
        ("command line", "dyndbg", "", '"file drivers/mmc/* +p"'),
        ("command line", "mitigations", "off", ""),
        ("modules", "usb_storage", "", "yes"),
        ("tools", "fio", "3.35", "3.36"),
    ]


def test_kernel_messages_are_compared_without_times_and_numbers(make):
    a = make("a", {"dmesg": DMESG})
    later = DMESG.replace("1.204113", "9.888").replace("0x411fd040", "0x411fd034")
    b = make("b", {"dmesg": later + "[    2.1] mmc0: Tuning failed, falling back to legacy\n"})
    assert told(differences.between([a], [b])) == [
        ("kernel messages", "mmc#: Tuning failed, falling back to legacy", "", "yes")
    ]


def boot_log(*more):
    """Messages of 200 drivers; one comes again later."""
    start = ["Booting Linux on physical CPU 0x0", "Linux version 6.12.1 (builder)"]
    drivers = [f"driver-{chr(97 + n % 26)}{chr(97 + n // 26)}: probed" for n in range(200)]
    lines = [*start, *drivers[:3], "mmc0: cache flushed", *drivers[3:], *more]
    return [f"[{number:5}.000000] {line}" for number, line in enumerate(lines)]


def test_a_ring_buffer_that_overflowed_is_no_reason_to_name_what_was_overwritten(make):
    whole = make("a", {"dmesg": "\n".join(boot_log("mmc0: cache flushed"))})
    late = boot_log("mmc0: cache flushed", "mmc0: Tuning failed, falling back to legacy")
    del late[60]  # a driver that B does not have
    cut = make("b", {"dmesg": "\n".join(late[40:])})
    assert told(differences.between([whole], [cut])) == [
        ("kernel messages", "driver-fc: probed", "yes", ""),
        ("kernel messages", "mmc#: Tuning failed, falling back to legacy", "", "yes"),
    ]
    later = make("c", {"dmesg": "\n".join(boot_log()[120:])})
    assert told(differences.between([later], [whole])) == []


def test_device_trees_are_compared_by_node_and_not_by_what_each_boot_changes(make):
    a = make("a", {"device_tree": tree()})
    b = make("b", {"device_tree": tree("quiet rw", 4, "ospi@fc40000 {\n};")})
    assert told(differences.between([a], [b])) == [
        ("device tree", "/soc/mmc@4f80000 bus-width", "<0x8>", "<0x4>")
    ]
    c = make("c", {"device_tree": tree(more='ospi {\nstatus = "disabled";\n};')})
    assert told(differences.between([a], [c])) == [("device tree", "/soc/ospi status", "", '"disabled"')]


def test_an_option_that_is_not_set_is_as_one_that_is_not_there(make):
    a = make("a", {"kernel_config": CONFIG})
    b = make("b", {"kernel_config": "CONFIG_HZ=1000\nCONFIG_MMC=y\n"})
    assert told(differences.between([a], [b])) == [("kernel configuration", "CONFIG_HZ", "250", "1000")]


def test_options_of_the_kernel_that_cost_time_come_first(make):
    b = "CONFIG_ARCH_INLINE_READ_LOCK=y\nCONFIG_DEV_DAX=m\nCONFIG_PREEMPT_RT=y\n"
    sides = [[make(name, {"kernel_config": f"CONFIG_MMC=y\n{more}"})] for name, more in (("a", ""), ("b", b))]
    found = differences.between(*sides)
    names = ["CONFIG_PREEMPT_RT", "CONFIG_DEV_DAX", "CONFIG_ARCH_INLINE_READ_LOCK"]
    assert [entry.what for entry in found] == names


def test_what_changes_from_boot_to_boot_explains_nothing(make):
    a = [make("a1", frequency_khz=1000), make("a2", frequency_khz=1400)]
    b = [make("b1", frequency_khz=1400), make("b2", frequency_khz=1000)]
    assert differences.between(a, b) == []
    assert [entry.what for entry in differences.between(a[:1], b[:1])] == ["frequency khz"]


def test_the_same_twice_differs_in_nothing_and_what_one_side_lacks_is_unknown(make):
    documents = {"dmesg": DMESG, "device_tree": tree(), "kernel_config": CONFIG}
    facts = {"kernel": "6.12.1", "command_line": "console=ttyS0 quiet", "tools": {"fio": "3.36"}}
    a, b, bare = make("a", documents, **facts), make("b", documents, **facts), make("bare", **facts)
    assert differences.between([a], [b]) == differences.between([a], [bare]) == []


def test_a_damaged_device_tree_is_said(make):
    a, b = make("a", {"device_tree": tree()}), make("b", {"device_tree": "d00dfeed"})
    found = differences.between([a], [b])
    assert any(entry.what == "blob" and "cannot be read" in entry.b for entry in found)


def test_explain_on_the_command_line(make, tmp_path, capsys):
    make("a", {"kernel_config": "".join(f"CONFIG_X{n}=y\n" for n in range(40))})
    make("b", {"kernel_config": CONFIG})
    assert main(["compare", "--facts", "a", "b", "--results", str(tmp_path)]) == 0
    text = capsys.readouterr().out
    assert text.startswith("kernel configuration:\n  only in B: CONFIG_HZ = 250\n")
    assert "more (--all)" in text
    assert main(["compare", "--facts", "a", "b", "--results", str(tmp_path), "--json", "-"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 42
