"""Recipes that build on another, what the variants of the project share, and copies of their board files."""

import re
from pathlib import Path

import pytest
import yaml
from evmperf_virtual import compiled, envfile, image
from evmperf_virtual.recipe import Recipe

from evmperf.boards import board as boards
from evmperf.model.errors import UsageError

ROOT = Path(__file__).parents[2]
VARIANTS = sorted(path.parent.name for path in (ROOT / "virtual-evm").glob("*/variant.yaml"))

PLAIN = Path(__file__).with_name("plain.yaml").read_text()
KNOWN = yaml.safe_load(Path(__file__).with_name("recipes.yaml").read_text())


@pytest.fixture
def recipes(tmp_path, monkeypatch):
    monkeypatch.setenv("EVMPERF_RECIPES", str(tmp_path))
    write(tmp_path / "plain/variant.yaml", PLAIN)
    write(tmp_path / "plain/f", "fragment")
    write(tmp_path / "plain/overlay/etc/hostname", "plain")
    write(tmp_path / "plain/overlay/etc/hosts", "hosts")
    return tmp_path


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize("case", KNOWN["differs"])
def test_a_variant_says_only_what_differs(recipes, case):
    write(recipes / "other/variant.yaml", yaml.safe_dump({"base": "plain", **case["own"]}))
    assert Recipe.read("other").data == Recipe.read("plain").data | case["gives"]


def test_own_files_go_over_those_of_the_base(recipes):
    write(recipes / "other/variant.yaml", "base: plain\n")
    write(recipes / "other/overlay/etc/hostname", "other")
    recipe = Recipe.read("other")
    files = recipe.files("overlay")
    assert {name: path.read_text() for name, path in files.items()} == {
        "etc/hostname": "other",
        "etc/hosts": "hosts",
    }
    assert recipe.file("f") == recipes / "plain/f"
    write(recipes / "other/f", "own")
    assert recipe.file("f") == recipes / "other/f"
    for look in (recipe.file, recipe.files):
        with pytest.raises(UsageError, match="names nothing, but there"):
            look("nothing")


def test_the_hash_covers_the_bases_yaml_and_files(recipes):
    write(recipes / "other/variant.yaml", "base: plain\n")

    def hashes():
        recipe = Recipe.read("other")
        return recipe.hash(), recipe.hash("uboot", files=["f"])

    assert hashes() == hashes()
    assert hashes()[0] == Recipe.read("plain").hash()
    seen = [hashes()]
    write(recipes / "plain/overlay/etc/hosts", "changed")
    seen.append(hashes())
    assert seen[0][0] != seen[1][0]
    assert seen[0][1] == seen[1][1]
    write(recipes / "plain/variant.yaml", PLAIN.replace("plain", "other"))
    seen.append(hashes())
    write(recipes / "plain/f", "changed")
    seen.append(hashes())
    assert len({whole for whole, _ in seen}) == 4
    assert seen[2][1] != seen[3][1]


@pytest.mark.parametrize("reason", KNOWN["wrong"])
def test_a_wrong_recipe_is_refused_with_the_reason(recipes, reason):
    write(recipes / "other/variant.yaml", KNOWN["wrong"][reason])
    with pytest.raises(UsageError, match=reason):
        Recipe.read("other")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_of_the_project_is_whole(variant):
    recipe = Recipe.read(variant)
    assert re.fullmatch("[0-9a-f]{12}", recipe.hash())
    assert recipe.files(recipe.data["rootfs"]["overlay"])
    for name in (*compiled.uboot_inputs(recipe), recipe.data["initrd"]["init"]):
        assert recipe.file(name).stat().st_size


def test_variants_share_the_parts_that_are_the_same():
    plain, rt, ospi = (
        image.part_keys(Recipe.read(name)) for name in ("virtual", "virtual-rt", "virtual-ospi")
    )
    assert {name for name in plain if plain[name] != rt[name]} == {"kernel"}
    assert {name for name in plain if plain[name] != ospi[name]} == {"uboot", "userland"}  # perf


def test_each_variant_has_a_board_file_with_ports_of_its_own():
    ports = [port for name in VARIANTS for port in boards.load(envfile.source(name)).lab_ports()]
    assert len(set(ports)) == 2 * len(VARIANTS)
    assert envfile.usual_ports("virtual") == (7001, 7002)
    assert envfile.usual_ports("board-b") == (0, 0)


def test_no_module_knows_a_variant_but_the_default_one():
    others = [name for name in VARIANTS if name != "virtual"]
    assert others
    for module in (*(ROOT / "evmperf").rglob("*.py"), *(ROOT / "pytest_evmperf").rglob("*.py")):
        for name in others:
            assert name not in module.read_text(), module


# Copies of a board file for boards side by side

FILE = envfile.source("virtual")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_copy_differs_in_its_ports_alone(tmp_path, variant):
    original, copy = envfile.source(variant), tmp_path / "other" / "board-b.yaml"
    envfile.write(original, copy, serial_port=1234, power_port=5678)
    assert boards.load(copy).lab_ports() == (1234, 5678)
    head, *lines = copy.read_text().splitlines()
    changed = [
        (old, new) for old, new in zip(original.read_text().splitlines(), lines, strict=True) if old != new
    ]
    assert str(original) in head
    assert all("1234" in new or "5678" in new for _, new in changed)
    assert len(changed) == (3 if "ScpiMeter:" in original.read_text() else 2)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(UsageError, match="cannot be read"):
        envfile.write(tmp_path / "no.yaml", tmp_path / "copy.yaml", serial_port=1, power_port=2)
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot be written"):
        envfile.write(FILE, tmp_path / "file" / "copy.yaml", serial_port=1, power_port=2)


@pytest.mark.parametrize(
    ("old", "new"), [("port: 7001", "port: console"), ("127.0.0.1:7002/power", "power.lab")]
)
def test_a_file_of_another_kind_of_board_has_no_ports(tmp_path, old, new):
    (tmp_path / "virtual.yaml").write_text(FILE.read_text().replace(old, new))
    with pytest.raises(UsageError, match="does not name the ports"):
        boards.load(tmp_path / "virtual.yaml").lab_ports()
