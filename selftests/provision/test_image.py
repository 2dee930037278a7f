"""Reading images: partition tables, file systems, kernels and compressions as their tools make
them.
"""

import random

import pytest

from evmperf.lab.provision import content, identity, running
from evmperf.lab.provision.cache import open_image
from evmperf.model.errors import LabError, UsageError
from selftests.provision import imagelab
from selftests.provision.imagelab import BANNER, KERNEL, LOADER, RELEASE, SPL, VERSION, Spec
from selftests.support import devices, programs, seeds

CONSOLES = seeds.place("real/consoles")
pytestmark = pytest.mark.usefixtures("own_cache")


def test_an_image_of_ti_s_form_is_identified(plain):
    says = identity.read(plain)
    assert (says.root, says.uboot) == ("0badcafe-02", BANNER)
    assert (says.kernel, says.kernel_version) == (RELEASE, VERSION)
    assert (says.machine, says.release, says.name) == ("am64xx-evm", "2025.01", "Arago 2025.01")


def test_of_gpt_the_partition_s_own_uuid_is_the_root(tmp_path):
    image = imagelab.build(tmp_path / "gpt.wic", Spec(label="gpt"))
    says = identity.read(image)
    told = programs.run("/usr/sbin/sfdisk", "--part-uuid", str(image), "2", check=True)
    assert says.root == told.stdout.strip().lower()
    assert says.kernel == RELEASE


@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("Image.gz", lambda _folder: imagelab.packed(KERNEL, "gz")),
        ("fitImage", lambda folder: imagelab.fit(folder, KERNEL, "none")),
        ("fitImage", lambda folder: imagelab.fit(folder, imagelab.packed(KERNEL, "gz"), "gzip")),
        ("Image-6.12.43", lambda _folder: imagelab.packed(KERNEL, "xz")),
    ],
)
def test_kernels_are_found_however_they_are_packed(tmp_path, name, make):
    root = {**Spec().root, f"boot/{name}": make(tmp_path)}
    del root["boot/Image"]
    links = {**Spec().links, **({"boot/Image": name} if name.startswith("Image-") else {})}
    says = identity.read(imagelab.build(tmp_path / "a.wic", Spec(root=root, links=links)))
    assert (says.kernel, says.kernel_version) == (RELEASE, VERSION)


def test_what_this_host_cannot_read_is_a_lab_failure_with_its_remedy(plain, tmp_path, monkeypatch):
    monkeypatch.setitem(content._FORMATS, "zst", (b"\x28\xb5\x2f\xfd", "zstd", ["no-zstd"]))
    beside = b"\x28\xb5\x2f\xfd, by accident"
    assert identity.kernel(beside + imagelab.packed(KERNEL, "gz")) == (RELEASE, VERSION)
    with pytest.raises(LabError, match="install the package zstd"):
        identity.kernel(beside)
    (tmp_path / "partx").write_text("#!/bin/sh\nexec sleep 60\n")
    (tmp_path / "partx").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setattr(identity, "_TIMEOUT_S", 0.1)
    with pytest.raises(LabError, match=r"partx takes more than 0.1 s"):
        identity.read(plain)


def test_links_in_a_circle_lead_nowhere(tmp_path):
    root = dict(Spec().root)
    del root["boot/Image"]
    links = {**Spec().links, "boot/Image": "Image.gz", "boot/Image.gz": "Image"}
    says = identity.read(imagelab.build(tmp_path / "a.wic", Spec(root=root, links=links)))
    assert (says.kernel, says.release) == ("", "2025.01")


def test_a_fit_that_is_cut_anywhere_never_breaks_the_reader(tmp_path):
    whole = imagelab.fit(tmp_path, KERNEL, "none")
    for end in range(0, len(whole), 97):
        found = identity.kernel(whole[:end])
        assert found is None or found[0] == RELEASE


@pytest.fixture(scope="module", params=imagelab.PACKERS)
def whole(plain, tmp_path_factory, request):
    """A compressed image, and behind its disk random data: in zeros even many flipped bits mean the same."""
    given = tmp_path_factory.mktemp("whole") / plain.name
    given.write_bytes(plain.read_bytes() + random.Random(1).randbytes(1 << 20))
    packed = imagelab.pack(given, request.param)
    with packed.open("ab") as file:  # as pixz and pigz do: a second stream is more of the content
        file.write(imagelab.packed(b"end", request.param))
    return packed


def test_compressed_images_are_the_same_image(plain, whole):
    image, raw = open_image(str(whole)), whole.with_suffix("")
    assert image.content.read_bytes() == raw.read_bytes() + b"end"
    assert (image.size, image.sha256) == (raw.stat().st_size + 3, content.sha256(whole))
    assert image.content_sha256 == content.sha256(image.content)
    assert image.identity == identity.read(plain)


@pytest.mark.parametrize("spoil", ["cut", "cut at its end", "flipped"])
def test_a_compressed_image_that_is_spoilt_is_refused(whole, tmp_path, own_cache, spoil):
    data, spoilt = bytearray(whole.read_bytes()), tmp_path / whole.name
    data[-500_000] ^= 4 if spoil == "flipped" else 0
    spoilt.write_bytes(data[: {"cut": len(data) // 3, "cut at its end": -9}.get(spoil)])
    with pytest.raises(UsageError, match="is damaged or cut short"):
        open_image(str(spoilt))
    assert not list(own_cache.rglob("content.*"))


def test_a_raw_image_that_ends_before_its_partitions_is_refused(plain, tmp_path):
    short = tmp_path / "a.wic"
    short.write_bytes(plain.read_bytes()[: 6 << 20])
    with pytest.raises(UsageError, match=r"a\.wic is cut short: .*7340032"):
        open_image(str(short))


def test_no_room_for_the_content_is_a_lab_failure_and_leaves_nothing(packed, own_cache):
    with devices.small(own_cache, "64k"):
        with pytest.raises(LabError, match="there is no room in"):
            open_image(str(packed))
        assert not list(own_cache.rglob("content.*"))


def test_a_page_of_a_login_is_no_image(tmp_path):
    page = tmp_path / "a.wic.xz"
    page.write_text("<html>Please log in</html>" * 99)
    with pytest.raises(UsageError, match="has no partition table"):
        open_image(str(page))


def test_spl_is_no_u_boot():
    assert identity.banner(LOADER) == BANNER
    assert identity.banner(SPL.encode() + b"\0U-Boot is nice") == ""


@seeds.needs("real/consoles")
def test_u_boot_s_first_line_is_found_on_real_consoles():
    found = {}
    for file in CONSOLES.glob("*.txt"):
        text = file.read_text(errors="replace").replace("\r", "")
        if "\nU-Boot 20" in text:
            found[file.name] = running.banner(text.splitlines())
    assert len(found) > 8
    assert all(line.startswith("U-Boot 20") for line in found.values()), found
