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
    nothing = variation.parse(["as-is"])
    assert (bool(nothing), str(nothing)) == (False, "as-is")


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
        ("twice.yaml", "image: given twice"),
    ],
)
def test_what_is_no_variation(tmp_path, word, told):
    (tmp_path / "mapping.yaml").write_text("args: quiet\n")
    (tmp_path / "damaged.yaml").write_text("[")
    (tmp_path / "nested.yaml").write_text("- nested.yaml\n")
    (tmp_path / "twice.yaml").write_text("- image:a\n- image:b\n")
    with pytest.raises(UsageError, match=told):
        variation.parse([word], tmp_path)
