import pytest

from evmperf.boards import variation
from evmperf.model.errors import UsageError


def test_words_of_each_kind():
    found = variation.parse(
        ["args:quiet mitigations=off", "uboot:bootdelay=0", "run:echo 1 >/sys/x", "image:a:b.wic"]
    )
    assert found.kernel_arguments == "quiet mitigations=off"
    assert found.uboot == {"bootdelay": "0"}
    assert found.commands == ("echo 1 >/sys/x",)
    assert found.image == "a:b.wic"
    assert str(found).startswith("args:quiet mitigations=off, uboot:bootdelay=0")


def test_as_is_is_nothing():
    found = variation.parse(["as-is"])
    assert not found
    assert str(found) == "as-is"


def test_a_file_of_words(tmp_path):
    (tmp_path / "fast.yaml").write_text("- args:quiet\n- 'run:echo a:b'\n")
    found = variation.parse(["fast.yaml", "args:ro"], tmp_path)
    assert found.kernel_arguments == "quiet ro"
    assert found.commands == ("echo a:b",)


@pytest.mark.parametrize(
    ("word", "told"),
    [
        ("quiet", "is not a variation"),
        ("arg:quiet", "is not a variation"),
        ("args:", "is not a variation"),
        ("args:it's", "single quote"),
        ("uboot:bootdelay", "NAME=VALUE"),
        ("uboot:a b=1", "NAME=VALUE"),
        ("uboot:a=it's", "NAME=VALUE"),
        ("missing.yaml", "cannot be read"),
        ("mapping.yaml", "must be a list"),
        ("damaged.yaml", "is not YAML"),
        ("nested.yaml", "cannot name another file"),
    ],
)
def test_what_is_no_variation(tmp_path, word, told):
    (tmp_path / "mapping.yaml").write_text("args: quiet\n")
    (tmp_path / "damaged.yaml").write_text("[")
    (tmp_path / "nested.yaml").write_text("- nested.yaml\n")
    with pytest.raises(UsageError, match=told):
        variation.parse([word], tmp_path)


def test_one_image_a_variation():
    with pytest.raises(UsageError, match="image: given twice"):
        variation.parse(["image:a", "image:b"])
