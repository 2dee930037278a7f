"""Case files: what goes out, what does not, and what hostile ones are told."""

import gzip
import json
import re
import subprocess
import sys

import msgspec
import pytest

from evmperf.commands.app import why
from evmperf.commands.cli.main import main
from evmperf.measure.runs import casefile, spool
from evmperf.measure.runs.history import run_folder
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
from evmperf.model.facts import Facts
from evmperf.model.results import Sample
from evmperf.model.run import Run
from evmperf.model.state import State
from selftests.support import seeds
from selftests.support.secretforms import FORMS
from selftests.support.spools import a_case

SECRETS = (
    "lab7-server",
    "192.168.17.4",
    "fe80::5054:ff:fe12:3456",
    "52:54:00:12:34:56",
    "6e3f1a52-6c0e-4f53-9d0b-3f2f5a1ce001",
    "S4EVNX0N123456",
    "hunter2",
    "alice",
    "aa015851454d55212101deadbeef2900",
)
TEXT = (
    "eth0: 52:54:00:12:34:56 at 192.168.17.4 and fe80::5054:ff:fe12:3456 of lab7-server\n"
    "root=PARTUUID=6e3f1a52-6c0e-4f53-9d0b-3f2f5a1ce001 12:34:56 0000:00:04.0 kernel 6.12.7\n"
    "by-id/nvme-S4EVNX0N123456 nvme serial: S4EVNX0N123456 password=hunter2 /home/alice/x "
    "http://alice@lab7-server/ 127.0.0.1\n"
)


@pytest.fixture
def run(tmp_path):
    """A run with a case full of secrets, and its folder."""
    known = {
        "kernel": "6.12.7",
        "machine": "aarch64",
        "tester": "lab7-server",
        "cards": [{"cid": SECRETS[-1], "name": "QEMU!!"}],
    }
    measured = Run("r1", "j7200-evm", "full", lab="lab7-server", facts=Facts.from_dict(known))
    kept = spool.Spool(tmp_path / "results", measured)
    raw = kept.keep_raw("emmc_raw_fio_1g/4k/read.txt", TEXT)
    result = a_case(
        benchmark="emmc_raw_fio_1g",
        case="4k",
        samples=(Sample("read_throughput", 20.0, "MB/s", 0, 1),),
        conditions={"said": TEXT},
        raw=(raw,),
        state=State(shown={"queue.read_ahead_kb": 0}),
    )
    kept.append(result)
    kept.append(msgspec.structs.replace(result, case="1m"))
    (kept.folder / "facts").mkdir()
    (kept.folder / "facts/dmesg").write_text(TEXT)
    (kept.folder / "facts/device_tree").write_text("serial")
    return kept.folder


def test_no_secret_goes_out_and_the_list_says_what_does(run):
    packed, listed = casefile.pack(run, "emmc_raw_fio_1g", "4k", [])
    text = gzip.decompress(packed).decode()
    assert [secret for secret in SECRETS if secret in text] == []
    for kept in ("12:34:56 0000:00:04.0 kernel 6.12.7", "127.0.0.1", "QEMU!!", "aarch64"):
        assert kept in text
    assert set(json.loads(text)["files"]) == {"raw/emmc_raw_fio_1g/4k/read.txt", "facts/dmesg"}
    assert {secret for secret in SECRETS for line in listed if secret in line} >= set(SECRETS) - {"alice"}
    assert len(json.loads(text)["records"]) == 1


MACHINES = {
    "serial#=4a56b0099": "4a56b0099",
    "serial# = BBB-0012": "BBB-0012",
    '"serial": "S4EVNX0N1"': "S4EVNX0N1",
    "usb 1-1: SerialNumber: 00e04c000001": "00e04c000001",
    "Serial Number: abcdef": "abcdef",
    "scp x bob@build7.lab.example:/tmp": "build7.lab.example",
    "root=PARTUUID=0badcafe-02 rw": "0badcafe-02",
    "ethaddr=70:ff:76:1d:00:01": "70:ff:76:1d:00:01",
    "inet6 fd00::12:34/64": "fd00::12:34",
}


@pytest.mark.parametrize("form", [*FORMS, *MACHINES])
def test_no_form_of_a_secret_goes_out(run, form):
    secret = {**FORMS, **MACHINES}[form]
    (run / "raw/emmc_raw_fio_1g/4k/read.txt").write_text(f"before\n{form}\nagain {form}")
    packed, listed = casefile.pack(run, "emmc_raw_fio_1g", "4k", [])
    assert secret not in gzip.decompress(packed).decode()
    assert any(secret in line for line in listed)


CONSOLES = [path for path in seeds.real("", "consoles*/*.txt") if not path.name.startswith("README")]
MACHINES_THERE = {
    *("alberink", "aspbuild11", "kalamata", "linux-VMware-Virtual-Platform"),
    *("j7200-evm", "am62xx-evm", "juno", "orangepizero2"),
}
"""Who built kernels of these consoles, and the boards of their prompts; KernelCI's builders are kci-..."""
NUMBER = r"[0-9a-fx]{2,}(?:[.:-][0-9a-f]*)*"


@pytest.mark.skipif(not CONSOLES, reason="no shared/real beside the checkout")
def test_no_word_of_a_real_console_is_replaced_but_addresses_and_names_of_machines():
    wrong = {}
    for path in CONSOLES:
        hiding = casefile.Hiding([])
        hiding.text(path.read_text(errors="replace"))
        for found, word in hiding.replacements.items():
            bare = found.strip(" :=")
            named = bare in MACHINES_THERE or bare.startswith("kci-")
            if not (named if word.startswith("(host") else re.fullmatch(NUMBER, bare, re.IGNORECASE)):
                wrong[path.name, found] = word
    assert (wrong, len(CONSOLES) > 140) == ({}, True)


def test_a_row_keeps_its_name_though_it_has_an_address(run):
    row = "netperf -H 192.168.17.4 -j"
    (one, _) = spool.read_results(run)
    spool.append_records(run, [msgspec.structs.replace(one, case=row, params={"command": row})])
    packed, _ = casefile.pack(run, "emmc_raw_fio_1g", row, [])
    (record,) = json.loads(gzip.decompress(packed))["records"]
    assert record["case"] == row
    assert "192.168.17.4" not in record["conditions"]["said"]


def test_a_release_is_no_address(run):
    assert casefile.Hiding([]).text("release 11.02.08.02 of 10.1.2.3") == "release 11.02.08.02 of (address 1)"


def test_commands_read_it(run, tmp_path, capsys):
    file = tmp_path / "problem.evmperf"
    assert main(["case", "pack", str(run), "emmc_raw_fio_1g 4k", "-o", str(file)]) == 0
    said = capsys.readouterr().out.strip().splitlines()
    assert len(said[said.index("") + 1 :]) == 5
    assert "read-ahead" in said[-2]
    assert main(["show", str(file)]) == 0
    assert "emmc_raw_fio_1g" in capsys.readouterr().out
    (answer,) = why.explain(run_folder(str(file), tmp_path), "4k").answers
    assert [cause.rule for cause in answer.causes] == ["read-ahead"]
    assert main(["compare", str(file), str(run)]) in (0, 1, 5, 6)
    assert main(["case", "pack", str(run), "emmc_raw_fio_1g 9k", "-o", str(file)]) == 4


def test_a_case_that_cannot_be_packed_or_measured_here_is_said(run, tmp_path, capsys, monkeypatch):
    for name, text in {"LG_PLACE": "one", "LG_COORDINATOR": "127.0.0.1:9"}.items():
        monkeypatch.setenv(name, text)
    pack = ["case", "pack", str(run), "emmc_raw_fio_1g 4k", "-o"]
    assert main([*pack, str(tmp_path / "nowhere/x")]) == ExitStatus.LAB_BROKEN
    assert "nowhere/x: cannot be written: " in capsys.readouterr().err
    one, other, empty = (tmp_path / f"{name}.evmperf" for name in ("one", "other", "empty"))
    assert main([*pack, str(one)]) == 0
    content = json.loads(gzip.decompress(one.read_bytes()))
    content["records"][0]["case"] = "5k"
    other.write_bytes(gzip.compress(json.dumps(content).encode()))
    empty.write_bytes(gzip.compress(json.dumps(good()).encode()))
    for file, status, told in (
        (empty, ExitStatus.USAGE, "has no case"),
        (other, ExitStatus.USAGE, "emmc_raw_fio_1g has no case '5k' here"),
        (one, ExitStatus.LAB_BROKEN, "nothing was measured .exit status 3.: see .*/again/rounds.log"),
    ):
        words = ["case", "measure", str(file), "--lg-env", "am64x", "--results", str(tmp_path / "again")]
        assert main(words) == status
        assert re.search(told, capsys.readouterr().err)


def good():
    header = {"schema": 2}
    run = {**header, "id": "r", "board": "b", "profile": "quick"}
    return {"format": "evmperf-case/1", "run": run, "records": [], "files": {}}


@pytest.mark.parametrize(
    "change",
    [
        {"files": {"../../x": ""}},
        {"files": {"raw/../../x": ""}},
        {"files": {"/etc/x": ""}},
        {"files": {"run.json": ""}},
        {"files": {"raw": "", "raw/x": ""}},
        {"files": {f"raw/{n}": "" for n in range(1001)}},
        {"format": "evmperf-case/2"},
        {"run": {}},
        {"run": {"schema": 2, "id": "../x", "board": "b", "profile": "quick"}},
        {"records": "x"},
        b"",
        b"text",
        gzip.compress(b"{", mtime=0),
        gzip.compress(b"[" * 100000, mtime=0),
    ],
    ids=str,
)
def test_a_hostile_case_file_is_refused(tmp_path, change):
    file = tmp_path / "x"
    is_whole = isinstance(change, bytes)
    file.write_bytes(change if is_whole else gzip.compress(json.dumps({**good(), **change}).encode()))
    with pytest.raises(UsageError):
        casefile.unpack(file)


def test_a_case_file_that_swells_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(casefile.limits, "CASE_BYTES", 1 << 20)
    file = tmp_path / "x"
    file.write_bytes(gzip.compress(b"a" * (4 << 20)))
    with pytest.raises(UsageError, match="larger"):
        casefile.unpack(file)


_UNPACK = """
import re, sys
from pathlib import Path
from evmperf.measure.runs import casefile
from evmperf.model.errors import UsageError
from evmperf.model.exits import ExitStatus
try:
    casefile.unpack(Path(sys.argv[1]))
except UsageError:
    # Not ru_maxrss, which begins with that of the process before exec.
    print(int(re.search(r"VmHWM:\\s*([0-9]+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.parametrize("part", ["run", "records", "files"])
def test_a_small_file_fills_no_memory(tmp_path, part):
    whole = {**good(), part: "PART"}
    small = (
        ",".join(f'"{n:x}":""' for n in range(1 << 20)) if part == "files" else ",".join(["{}"] * (20 << 20))
    )
    text = json.dumps(whole).replace('"PART"', f"{{{small}}}" if part == "files" else f"[{small}]")
    file = tmp_path / "x"
    file.write_bytes(gzip.compress(text.encode(), 1))
    said = subprocess.run([sys.executable, "-c", _UNPACK, file], capture_output=True, check=True).stdout
    assert int(said) < 512


def test_a_good_one_is_read(tmp_path):
    file = tmp_path / "x"
    file.write_bytes(gzip.compress(json.dumps(good()).encode()))
    assert spool.read_run(casefile.unpack(file)).board == "b"
