import hashlib

from evmperf.measure import documents

CONFIG = "CONFIG_HZ=250\n" * 3


class Machine:
    """Has a kernel configuration and no device tree; counts what it is asked."""

    def __init__(self, config=CONFIG):
        self.config = config
        self.asked = []

    def perform(self, command):
        self.asked.append(command)
        if "sha256sum" not in command:
            return {"kernel_config": self.config}
        nothing, digest = (hashlib.sha256(t.encode()).hexdigest() for t in ("", CONFIG))
        return {
            "dmesg": "[ 0.1] hello\n",
            "device_tree": f"{nothing}  -\n",
            "kernel_config": f"{digest}  -\n",
        }


def gather(folder, machine):
    folder.mkdir()
    documents.gather(folder, machine.perform)
    return {file.name: file.read_text() for file in (folder / documents.FOLDER).iterdir()}


def test_what_is_large_is_fetched_once_for_all_runs(tmp_path):
    machine = Machine()
    expected = {"dmesg": "[ 0.1] hello\n", "kernel_config": CONFIG}
    assert gather(tmp_path / "one", machine) == expected
    assert len(machine.asked) == 2
    assert "device-tree" not in machine.asked[1]
    assert gather(tmp_path / "two", machine) == expected
    assert len(machine.asked) == 3


def test_a_large_document_that_came_back_wrong_is_not_kept(tmp_path):
    kept = gather(tmp_path / "one", Machine(config="CONFIG_HZ=25"))
    assert "kernel_config" not in kept
    assert gather(tmp_path / "two", Machine())["kernel_config"] == CONFIG
