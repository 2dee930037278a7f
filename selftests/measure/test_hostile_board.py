"""A board that answers on purpose what would write, read or fill the lab's host."""

import tracemalloc

import pytest

from evmperf.measure import documents, shellstep
from evmperf.measure.bench import ShellReply
from evmperf.model import limits
from evmperf.model.errors import RefusedOutput
from evmperf.model.results import Status
from selftests.measure.test_provenance import Machine, gather
from selftests.support import hostile
from selftests.support.runners import CASE, FINE

FINE_FILE = hostile.member("./x", b"12.5\n")


def says(text):
    """What the board answers to a step in place of the truth."""
    return lambda reply: ShellReply(0, text)


@pytest.mark.parametrize("name", hostile.ESCAPES)
def test_a_file_name_that_is_none_is_refused(name):
    with pytest.raises(RefusedOutput):
        shellstep.decode(hostile.answer(hostile.tar(FINE_FILE, hostile.member(name))))


@pytest.mark.parametrize("name", [hostile.ESCAPES[0], "{}/home/.bashrc", "x/.."])
def test_nothing_is_written_beside_raw(lab, tmp_path, name):
    evil = hostile.answer(hostile.tar(FINE_FILE, hostile.member(name.format(tmp_path))))
    # The first step asks for facts. So many folders up from a raw file is `tmp_path`.
    runner = lab([lambda reply: reply, *[says(evil)] * 9], results=tmp_path / "1/2/results")
    result = runner.measure(FINE, CASE)
    assert result.status is not Status.MEASURED
    raw = runner.spool.folder / "raw"
    assert all((runner.spool.folder / name).resolve().is_relative_to(raw) for name in result.raw)
    assert not [path for path in tmp_path.rglob("*") if path.is_file() and b"owned" in path.read_bytes()]
    # What the board said is kept, and as it came back whole, fetching it again is no use.
    refused = [failure for failure in result.failures if failure.refused]
    assert (runner.spool.folder / refused[0].raw).read_text() == evil
    assert sum("set --; ." in command for command in runner.bench.shell().asked) == 0


@pytest.mark.parametrize("name", [*sorted({*hostile.ESCAPES, "a\0b"} - {"a/b"})])
def test_the_spool_itself_writes_nothing_outside_raw(lab, tmp_path, name):
    spool = lab().spool
    before = sorted(tmp_path.rglob("*"))
    for path in (name, f"case/{name}", f"{name}/case"):
        with pytest.raises(RefusedOutput):
            spool.keep_raw(path, "owned")
    assert sorted(tmp_path.rglob("*")) == before


def test_a_link_in_raw_leads_nowhere(lab, tmp_path):
    spool = lab().spool
    (tmp_path / "home").mkdir()
    (spool.folder / "raw" / "case").symlink_to(tmp_path / "home")
    (spool.folder / "raw" / "file").symlink_to(tmp_path / "home" / ".bashrc")
    for name in ("case/x", "file"):
        with pytest.raises(RefusedOutput):
            spool.keep_raw(name, "owned")
    assert list((tmp_path / "home").iterdir()) == []


@pytest.mark.parametrize("said", ["{token}", "../../{name}", "A" * 64, "0" * 63, "\0", "."])
def test_the_board_s_hash_is_no_path_to_a_file_of_the_host(tmp_path, said):
    token = tmp_path / "token"
    token.write_text("secret")
    token.chmod(0o600)

    class Hostile(Machine):
        def perform(self, command):
            told = super().perform(command)
            if "sha256sum" in command:
                told["device_tree"] = told["kernel_config"] = (
                    said.format(token=token, name=token.name) + "  -\n"
                )
            return told

    kept = gather(tmp_path / "run", Hostile())
    assert set(kept) == {"dmesg"}
    assert "secret" not in "".join(kept.values())
    assert {p.name for p in tmp_path.iterdir()} <= {"token", "run", documents.KNOWN}


def test_a_bomb_costs_no_more_than_the_limit():
    bomb = hostile.answer(hostile.tar(hostile.member("x", bytes(4 * limits.STEP_BYTES))))
    assert len(bomb) < limits.MIB
    tracemalloc.start()
    try:
        with pytest.raises(RefusedOutput, match="more than 64 MiB") as refused:
            shellstep.decode(bomb)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.5 * limits.STEP_BYTES
    assert refused.value.raw == bomb


@pytest.mark.parametrize(
    "entry",
    [
        hostile.member("x", b"", type=b"S", size=0),
        hostile.member("x", b"path=../../x\n", type=b"L"),
        hostile.member("x", b"", type=b"K"),
    ],
)
def test_an_entry_that_claims_to_be_more_than_a_file_is_refused(entry):
    with pytest.raises(RefusedOutput, match="no plain file"):
        shellstep.decode(hostile.answer(hostile.tar(entry)))


@pytest.mark.parametrize("size", [b"-0000001000\0", b"77777777777\0", b"\x80" + b"\xff" * 11, b""])
def test_a_size_that_cannot_be_is_damage(size):
    archive = bytearray(hostile.tar(hostile.member("x")))
    archive[124:136] = size.ljust(12, b"\0")
    with pytest.raises(RefusedOutput, match="damaged"):
        shellstep.decode(hostile.answer(bytes(archive)))


def test_links_and_devices_are_passed_over():
    link = hostile.member("x", b"", type=b"2", linkname="/etc/passwd")
    device = hostile.member("y", b"", type=b"3")
    archive = hostile.tar(link, device, FINE_FILE)
    assert shellstep.decode(hostile.answer(archive)).files == {"x": "12.5\n"}


def test_more_files_than_a_step_may_leave_are_refused():
    many = [hostile.member(f"f{number}", b"") for number in range(limits.STEP_FILES + 1)]
    with pytest.raises(RefusedOutput, match="more than 1000 files"):
        shellstep.decode(hostile.answer(hostile.tar(*many)))


@pytest.mark.parametrize("head", ["step " + "9" * 5000 + " 1.0 2.0", "step 0 1.0 2" + "0" * 400])
def test_a_number_without_end_is_garbled(head):
    with pytest.raises(RefusedOutput, match="garbled"):
        shellstep.decode(f"{head}\n{hostile.answer(hostile.tar(FINE_FILE))}")


def test_an_archive_beside_that_is_too_large_is_not_fetched():
    class Shell:
        fetched = 0

        @property
        def files(self):
            return self

        def get(self, path):
            self.fetched += 1

        def run(self, command, timeout_s):
            return ShellReply(0, f"{hostile.HEAD}beside {1 << 40}\n")

    shell = Shell()
    with pytest.raises(RefusedOutput, match="1099511627776 bytes"):
        shellstep.run(shell, "true", 10)
    assert not shell.fetched


def test_a_sentence_has_a_size(lab):
    evil = hostile.answer(hostile.tar(hostile.member("x", b"9" * limits.MIB)))
    runner = lab([lambda reply: reply, *[says(evil)] * 9])
    for failure in runner.measure(FINE, CASE).failures:
        assert len(failure.message) < limits.MESSAGE_CHARS + 100
