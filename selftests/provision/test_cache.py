"""Images of a lab host: fetched once from a server that cuts, stalls and changes; what is refused before a
board is touched.
"""

import contextlib
import hashlib
import subprocess
import sys

import pytest

from evmperf.lab.provision import content, download
from evmperf.lab.provision.cache import open_image
from evmperf.lab.provision.image import check_fits
from evmperf.model.errors import LabError, UsageError
from selftests.provision import imagelab
from selftests.provision.imagelab import Spec
from selftests.provision.test_ways import board
from selftests.support import devices
from selftests.support.boardfiles import fake_board

pytestmark = pytest.mark.usefixtures("own_cache")


def test_an_image_is_fetched_once(server, plain):
    first, again = open_image(server.url), open_image(server.url)
    assert first == again
    assert first.content.read_bytes() == plain.read_bytes()
    assert server.asked == ["whole", "same"]
    assert server.sent == len(server.content)


@pytest.mark.parametrize("cut", [False, True])
def test_another_file_under_the_same_address_is_fetched_anew(server, tmp_path, cut):
    """Also if a part of the first was there."""
    server.cut = [100] * download.TRIES if cut else []
    with contextlib.suppress(LabError):
        open_image(server.url)
    longer = imagelab.build(tmp_path / "b.wic", Spec(root_mib=6))
    server.content = imagelab.pack(longer, "zst").read_bytes()
    image = open_image(server.url)
    assert image.sha256 == hashlib.sha256(server.content).hexdigest()
    assert image.content.read_bytes() == longer.read_bytes()


def test_a_cut_connection_is_taken_up_where_it_was_cut(server, plain):
    server.cut, told = [1000, 700], []
    image = open_image(server.url, tell=told.append)
    assert told[0] == f"fetching {server.url} (0 MiB)"
    assert [line.startswith(f"fetching {server.url} from where it was cut") for line in told] == [0, 1, 1]
    assert server.asked == ["whole", "bytes=1000-", "bytes=1700-"]
    assert server.sent == len(server.content)
    assert image.content.read_bytes() == plain.read_bytes()


def test_a_server_that_always_cuts_is_given_up_and_taken_up_by_the_next_call(server):
    server.cut = [10] * download.TRIES
    with pytest.raises(LabError, match=r"IncompleteRead.*resumes there"):
        open_image(server.url)
    open_image(server.url)
    assert server.asked[-1] == "bytes=40-"


def test_a_silent_server_is_said_so(server, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT_S", 0.2)
    monkeypatch.setattr(download, "TRIES", 1)
    server.stalls = True
    with pytest.raises(LabError, match=r"cannot be fetched: .*[Tt]imed? ?out"):
        open_image(server.url)


def test_a_wrong_address_is_the_user_s(server):
    with pytest.raises(UsageError, match="404 Not Found: correct the address"):
        open_image(server.url.replace("a.wic.zst", "b.wic"))


@pytest.mark.parametrize("form", ["{sum}  {name}\n", "{sum}\n"])
def test_a_checksum_beside_the_image_counts(plain, tmp_path, form):
    given = tmp_path / "a.wic"
    given.write_bytes(plain.read_bytes())
    right = content.sha256(given)
    beside = tmp_path / "a.wic.sha256"
    beside.write_text(form.format(sum=right, name=given.name))
    assert open_image(str(given)).sha256 == right
    for wrong, said in (("0" * 64, f"has SHA-256 {right}, but 0000"), ("none", "has no SHA-256 in it")):
        beside.write_text(form.format(sum=wrong, name=given.name))
        with pytest.raises(UsageError, match=said):
            open_image(str(given))


def test_a_wrong_checksum_is_refused_and_nothing_kept(server, tmp_path):
    server.checksum = "1" * 64
    with pytest.raises(UsageError, match="is expected"):
        open_image(server.url)
    assert not list(tmp_path.rglob("content.*"))
    server.checksum = hashlib.sha256(server.content).hexdigest()
    assert open_image(server.url)


def test_a_full_disk_is_the_lab_s_and_named(server, own_cache):
    server.content = bytes(1 << 20)
    with devices.small(own_cache, "256k"), pytest.raises(LabError, match=r"no room .*http://.*EVMPERF_CACHE"):
        open_image(server.url)


GET = """
import sys
from evmperf.lab.provision.cache import open_image
print(open_image(sys.argv[1]).content.stat().st_ino)
"""


def test_two_boards_at_once_share_one_download(server):
    command = [sys.executable, "-c", GET, server.url]
    both = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    files = {process.communicate(timeout=60)[0] for process in both}
    assert [process.returncode for process in both] == [0, 0]
    assert len(files) == 1
    assert sorted(server.asked) == ["same", "whole"]


def test_an_image_that_went_from_the_cache_is_made_again(packed):
    first = open_image(str(packed))
    first.content.unlink()
    assert open_image(str(packed)).content.is_file()


def test_an_image_for_another_machine_is_refused(plain, tmp_path):
    image = open_image(str(plain))
    check_fits(image, board(tmp_path, machine="am64xx-evm"))
    with pytest.raises(UsageError, match=r"is for the machine am64xx-evm, and b\.yaml says"):
        check_fits(image, board(tmp_path, machine="am62xx-evm"))


def test_an_image_without_boot_loader_or_root_is_refused(tmp_path):
    bare = open_image(str(imagelab.build(tmp_path / "c.wic", Spec(boot={}))))
    with pytest.raises(UsageError, match="has no boot loader"):
        check_fits(bare, board(tmp_path))
    check_fits(bare, fake_board(tmp_path / "b.yaml", boot={"medium": "sd", "flow": "falcon"}))
    empty = open_image(str(imagelab.build(tmp_path / "d.wic", Spec(root={}, links={"a": "b"}))))
    with pytest.raises(UsageError, match="has no root file system"):
        check_fits(empty, board(tmp_path))
