from evmperf.boards import variation


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
