"""What a look reads from a board: scripted trees of sysfs, and recordings of virtual EVMs."""

import json
import os
import re
import shutil
from pathlib import Path

import msgspec
import pytest

from evmperf.measure.state import look, rules
from evmperf.model.state import State
from selftests.support import programs
from selftests.support.boardfiles import fake_board

RECORDED = Path(__file__).resolve().parents[1] / "data"
DATA = RECORDED / "state"
CARD = "sys/devices/platform/bus/fa10000.mmc/mmc_host/mmc0/mmc0:0001"
TREE = {
    "proc/uptime": "83.20 310.11\n",
    "proc/loadavg": "0.31 0.20 0.07 2/97 512\n",
    "proc/stat": "cpu  10 0 20 900 5 0 1 0 0 0\ncpu0 1 1\nintr 777 0 0\nctxt 4242\nbtime 1\n",
    "proc/meminfo": "MemTotal: 1000 kB\nMemAvailable:     812340 kB\n",
    "proc/77/stat": "77 (kworker/0:1) I 2 0 0 0 -1 0 0 0 0 0 900 900 0 0 20 0 1 0 9 0 0\n",
    "proc/78/stat": "78 (ksmd) S 2 0 0 0 -1 0 0 0 0 0 60 900 0 0 25 5 1 0 9 0 0\n",
    "proc/312/stat": "312 (odd) name (x)) R 1 0 0 0 -1 0 0 0 0 0 700 41 0 0 20 0 1 0 9 0 0\n",
    "proc/312/cmdline": "sh\0-c\0while :\ndo it's; done\0",
    "proc/314/stat": "314 (d) R 1 0 0 0 -1 0 0 0 0 0 700 41 0 0 20 0 1 0 9 0 0\n",
    "proc/314/cmdline": "d\0--password=hunter22\0",
    "proc/313/stat": "313 (idle-one) S 1 0 0 0 -1 0 0 0 0 0 3 1 0 0 20 0 1 0 9 0 0\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_governor": "ondemand\n",
    "sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq": "800000\n",
    "sys/devices/system/cpu/cpufreq/policy0/cpuinfo_max_freq": "1400000\n",
    "sys/devices/system/cpu/cpufreq/policy0/stats/time_in_state": "400000 17\n800000 2000\n",
    "sys/class/thermal/cooling_device0/type": "cpufreq-cpu0\n",
    "sys/class/thermal/cooling_device0/cur_state": "1\n",
    f"{CARD}/type": "MMC\n",
    f"{CARD}/life_time": "0x01 0x02\n",
    f"{CARD}/block/mmcblk0/mmcblk0p1/partition": "1\n",
    f"{CARD}/block/mmcblk0/queue/scheduler": "[none] mq-deadline\n",
    f"{CARD}/block/mmcblk0/queue/read_ahead_kb": "128\n",
    "sys/kernel/debug/bdi/x": "",
    "sys/kernel/debug/mmc0/ios": (
        "clock:\t\t52000000 Hz\nactual clock:\t50000000 Hz\nbus width:\t3 (8 bits)\n"
        "timing spec:\t1 (mmc high-speed)\n"
    ),
    "sys/kernel/debug/mmc0/caps": "0xc0000f47\n",
    "sys/kernel/debug/mmc0/caps2": "0x40\n",
    "sys/kernel/debug/mmc0/err_stats": "# Command Timeout Occurred:\t 0\n# Data CRC Errors:\t 2\n",
    "sys/kernel/debug/mmc0/mmc0:0001/ext_csd": "00" * 196 + "57" + "00" * 315 + "\n",
}


def _below(folder, script):
    """A look that reads the files of a folder, and the kernel's log from its own input."""
    script = re.sub(r"/(proc|sys)/", rf"{folder}/\1/", script)
    return re.sub(rf"{folder}(/proc/self/(?:fd/0|stat;))", r"\1", script)


@pytest.fixture(params=["mawk", "busybox"])
def said(request, tmp_path):
    """A function that gives what a look for a driver says on a board with these files."""
    if not shutil.which(request.param):
        pytest.skip(f"no {request.param} here")
    tools = tmp_path / "bin"
    (tools / "real").mkdir(parents=True)
    (tools / "real/awk").symlink_to(shutil.which(request.param))
    # The first time it dies, as mawk of a process that ends while it is read.
    once = "[ -e $OUT/died ] || { : >$OUT/died; exit 2; }"
    (tools / "awk").write_text(f'#!/bin/sh\n{once}\nexec {tools}/real/awk "$@"\n')
    (tools / "awk").chmod(0o755)
    # A kernel that has said nothing.
    (tools / "dmesg").write_text("#!/bin/sh\n")
    (tools / "dmesg").chmod(0o755)
    shell = ["busybox", "sh"] if request.param == "busybox" else ["sh"]

    def run(tree, driver, link, target, looks=2, **options):
        for name, text in tree.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / link).unlink(missing_ok=True)
        (tmp_path / link).symlink_to(tmp_path / target)
        board = fake_board(tmp_path / "fake.yaml", "boot", driver, **options)
        script = _below(tmp_path, look.script(board, driver))
        environment = {**os.environ, "OUT": str(tmp_path), "F": str(tmp_path), "LC_ALL": "C"}
        environment["PATH"] = f"{tools}:{environment['PATH']}"
        for _ in range(looks):  # the first finds the device, the second knows where it is
            done = programs.run(*shell, "-c", script, environment=environment, check=True)
            assert done.stderr == done.stdout == ""
        return (tmp_path / look.FILE).read_text().replace(str(tmp_path), "")

    return run


def test_an_emmc_says_what_matters_and_no_more(said):
    text = said(
        TREE,
        "emmc",
        "sys/class/block/mmcblk0p1",
        f"{CARD}/block/mmcblk0/mmcblk0p1",
        emmc={"scratch": "/dev/mmcblk0p1"},
    )
    found = look.parse(text)
    assert found.uptime_s == 83.2
    assert found.shown == {
        "running": 2,
        "wall_s": 1,
        "memory_kib": 1000,
        "memory_available_kib": 812340,
        "cpu.policy0.scaling_governor": "ondemand",
        "cpu.policy0.scaling_max_freq": 800000,
        "cpu.policy0.cpuinfo_max_freq": 1400000,
        "cooling_device0.type": "cpufreq-cpu0",
        "cooling_device0.cur_state": 1,
        "command.312": """sh -c 'while : do it'"'"'s; done'""",
        "queue.scheduler": "[none] mq-deadline",
        "queue.read_ahead_kb": 128,
        "card.type": "MMC",
        "card.life_time": "0x01 0x02",
        "mmc.ios.clock": "52000000 Hz",
        "mmc.ios.actual_clock": "50000000 Hz",
        "mmc.ios.bus_width": "3 (8 bits)",
        "mmc.ios.timing_spec": "1 (mmc high-speed)",
        "mmc.caps": "0xc0000f47",
        "mmc.caps2": "0x40",
        "mmc.ext_csd": 57,
    }
    assert found.counters == {
        "percpu.0_interrupt": 0,
        "percpu.0_idle": 0,
        "shell.own_ticks": 0,
        "shell.thread_ticks": 1800,
        "shell.log_lines": 0,
        "cpu_user": 10,
        "cpu_nice": 0,
        "cpu_system": 20,
        "cpu_idle": 900,
        "cpu_iowait": 5,
        "cpu_irq": 0,
        "cpu_softirq": 1,
        "cpu_steal": 0,
        "interrupts": 777,
        "context_switches": 4242,
        "cpu.policy0.time_in_state.400000": 17,
        "cpu.policy0.time_in_state.800000": 2000,
        "mmc.err_stats.Data_CRC_Errors": 2,
    }
    assert found.ticks == {("312", "odd) name (x)"): 741, ("314", "d"): 741, ("78", "ksmd"): 960}


def test_the_shell_that_looks_is_no_other_work(tmp_path):
    board = fake_board(tmp_path / "fake.yaml", "boot")
    busy = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done"
    text = (
        f"({busy}\n{look.script(board, 'system')}\nread -r own rest </proc/self/stat; echo $rest; echo $own)"
    )
    environment = {**os.environ, "OUT": str(tmp_path), "F": str(tmp_path)}
    done = programs.run("sh", "-c", f"{text}; true", environment=environment, check=True)
    fields, own = done.stdout.split("\n")[:2]
    assert int(fields.split()[12]) + int(fields.split()[13]) > 20  # it was busy
    found = look.parse((tmp_path / look.FILE).read_text())
    assert found.ticks
    assert own not in {number for number, _ in found.ticks}


def _log(tmp_path, *lines):
    """Have the kernel's log hold these lines."""
    text = "\n".join(f"<6>{line}" for line in lines)
    (tmp_path / "bin/dmesg").write_text(f"#!/bin/sh\ncat <<E\n{text}\nE\n")


def test_the_kernels_lines_of_a_driver_are_said_once(said, tmp_path):
    _log(
        tmp_path,
        "[    1.9] mmc0: new HS200 MMC card",
        "[    2.5] usb 1-1: new device",
        "[    3.1] mmc0: error -110",
        "[    3.2] mmc1: error -110 whilst initialising SD card",
    )
    where = ("emmc", "sys/class/block/mmcblk0p1", f"{CARD}/block/mmcblk0/mmcblk0p1")
    options = {"emmc": {"scratch": "/dev/mmcblk0p1"}}
    assert look.parse(said(TREE, *where, **options)).log == ()  # the second time nothing is new
    (tmp_path / "logged_emmc").write_text("2.0 7\n")
    # Of the host of the case's disk, and new since.
    text = said(TREE, *where, looks=1, **options)
    assert look.parse(text).log == ("[    3.1] mmc0: error -110",)
    assert look.parse(text).counters["shell.log_lines"] == 7 + 3
    assert look.parse(text).read_s == look.parse(text).uptime_s == 83.2, "read before the log"
    # A flood of 100 lines a second: the log holds its last two seconds of ten.
    _log(tmp_path, *(f"[   {10 + n / 100:.2f}] sd 1:0:0:0: [sdb] tag#0 Send" for n in range(200)))
    (tmp_path / "logged_emmc").write_text("2.0 7\n")
    assert look.parse(said(TREE, *where, looks=1, **options)).counters["shell.log_lines"] == 7 + 1004


TICKS = {"shell.own_ticks": 0, "shell.thread_ticks": 0, "shell.log_lines": 0}
IDLE = "sys/devices/system/cpu/cpu0/cpuidle"
PCM = "proc/asound/card0/pcm0c/sub0"
SCREEN = "sys/class/drm/card0-HDMI-A-1"
FOR_ONE = {  # files and what they say; DRM and devfreq have the form of the pages of the kernel
    "ipsec": (
        {
            "proc/crypto": (RECORDED / "openssl/afalg.crypto.txt").read_text()
            + "name         : cbc(aes)\ndriver       : cbc-aes-ce\npriority     : 300\n\n"
            + "name         : cbc(aes)\ndriver       : cbc-aes-neon\npriority     : 200\n\n"
            + "name         : authenc(hmac(sha256),cbc(aes))\n"
            + "driver       : authenc(hmac(sha256),cbc(aes))-sa2ul\npriority     : 3000\n"
        },
        {
            **{f"crypto.sha{bits}": f"sha{bits}-generic" for bits in (1, 224, 256, 384, 512)},
            "crypto.hmac-sha1": "hmac(sha1-generic)",
            "crypto.hmac-sha256": "hmac(sha256-generic)",
            "crypto.ecb-aes": "ecb(aes-generic)",
            "crypto.cbc-aes": "cbc-aes-ce",
            "crypto.authenc-hmac-sha256-cbc-aes": "authenc(hmac(sha256),cbc(aes))-sa2ul",
        },
    ),
    "rt": (  # of a machine with Linux 6.18
        {
            f"{IDLE}/state0/name": "POLL\n",
            f"{IDLE}/state0/disable": "0\n",
            f"{IDLE}/state0/latency": "0\n",
            f"{IDLE}/state0/time": "0\n",
            f"{IDLE}/state1/name": "haltpoll idle\n",
            f"{IDLE}/state1/disable": "0\n",
            f"{IDLE}/state1/latency": "1\n",
            f"{IDLE}/state1/time": "2795012030\n",
        },
        {
            "idle.cpu0.state0.name": "POLL",
            "idle.cpu0.state0.disable": 0,
            "idle.cpu0.state0.latency": 0,
            "idle.cpu0.state1.name": "haltpoll idle",
            "idle.cpu0.state1.disable": 0,
            "idle.cpu0.state1.latency": 1,
        },
    ),
    "alsa": (
        {
            f"{PCM}/hw_params": (RECORDED / "alsa/capture-8000.txt").read_text().partition("\n\n")[0],
            "proc/asound/card0/pcm0p/sub0/hw_params": "closed\n",
            "proc/asound/card0/id": "SoundCard\n",
        },
        {
            "alsa.card0": "SoundCard",
            "alsa.card0/pcm0c/sub0.access": "RW_INTERLEAVED",
            "alsa.card0/pcm0c/sub0.format": "S16_LE",
            "alsa.card0/pcm0c/sub0.subformat": "STD",
            "alsa.card0/pcm0c/sub0.channels": 2,
            "alsa.card0/pcm0c/sub0.rate": "8000 (8000/1)",
            "alsa.card0/pcm0c/sub0.period_size": 256,
            "alsa.card0/pcm0c/sub0.buffer_size": 4096,
        },
    ),
    "graphics": (
        {
            f"{SCREEN}/status": "connected\n",
            f"{SCREEN}/modes": "1920x1080\n1280x720\n",
            "sys/class/drm/card1-DSI-1/status": "disconnected\n",
            "sys/class/drm/renderD128/device/uevent": "DRIVER=pvrsrvkm\nOF_NAME=gpu\n",
            "sys/class/devfreq/fd00000.gpu/governor": "simple_ondemand\n",
            "sys/class/devfreq/fd00000.gpu/max_freq": "250000000\n",
            "sys/class/devfreq/fd00000.gpu/available_frequencies": "250000000 500000000\n",
        },
        {
            "display.card0-HDMI-A-1.status": "connected",
            "display.card0-HDMI-A-1.modes": "1920x1080",
            "display.card1-DSI-1.status": "disconnected",
            "display.renderD128.uevent": "DRIVER=pvrsrvkm",
            "devfreq.fd00000.gpu.governor": "simple_ondemand",
            "devfreq.fd00000.gpu.max_freq": 250000000,
            "devfreq.fd00000.gpu.available_frequencies": "250000000 500000000",
        },
    ),
}


@pytest.mark.parametrize("driver", FOR_ONE)
def test_what_concerns_one_driver_is_said_for_that_alone(said, driver, tmp_path):
    tree, shown = FOR_ONE[driver]
    found = look.parse(said(tree, driver, "sys/class/none", "sys/devices/none"))
    assert found.shown == shown
    idle = {"idle.cpu0.state0.time": 0, "idle.cpu0.state1.time": 2795012030} if driver == "rt" else {}
    assert found.counters == TICKS | idle
    other = look.script(fake_board(tmp_path / "other.yaml", "boot", "system"), "system")
    assert not any(word in other for word in ("cpuidle", "asound", "/proc/crypto ", "/drm/"))


def test_a_port_that_is_down_keeps_nothing_else_from_being_read(said, tmp_path):
    """The kernel refuses its speed (EINVAL), as a folder refuses to be read."""
    port = "sys/devices/platform/net/eth5"
    (tmp_path / port / "speed").mkdir(parents=True)
    tree = {f"{port}/duplex": "full\n", f"{port}/carrier_down_count": "3\n", f"{port}/mtu": "1500\n"}
    found = look.parse(said(tree, "pcie", "sys/class/net/eth5", port, pcie={"eth_interface": "eth5"}))
    assert found.shown == {"net.duplex": "full", "net.mtu": 1500}
    assert found.counters["net.carrier_down_count"] == 3


def test_a_network_card_behind_pcie(said):
    card = "sys/devices/pci0000:00/0000:00:01.0/0000:01:00.0"
    tree = {
        f"{card}/current_link_speed": "2.5 GT/s PCIe\n",
        f"{card}/max_link_speed": "8.0 GT/s PCIe\n",
        f"{card}/aer_dev_correctable": "RxErr 1\nTOTAL_ERR_COR 4\n",
        "sys/devices/pci0000:00/0000:00:01.0/max_link_speed": "5.0 GT/s PCIe\n",
        f"{card}/net/eth5/speed": "1000\n",
        f"{card}/net/eth5/mtu": "1500\n",
        f"{card}/net/eth5/statistics/rx_crc_errors": "3\n",
    }
    text = said(tree, "pcie", "sys/class/net/eth5", f"{card}/net/eth5", pcie={"eth_interface": "eth5"})
    found = look.parse(text)
    assert found.shown == {
        "net.speed": 1000,
        "net.mtu": 1500,
        "pci.0000:01:00.0.current_link_speed": "2.5 GT/s PCIe",
        "pci.0000:01:00.0.max_link_speed": "8.0 GT/s PCIe",
        "pci.0000:00:01.0.max_link_speed": "5.0 GT/s PCIe",
    }
    assert found.counters == TICKS | {
        "net.rx_crc_errors": 3,
        "pci.0000:01:00.0.aer_dev_correctable.TOTAL_ERR_COR": 4,
    }


def test_a_port_says_how_it_paces_interrupts_and_what_holds_it_back(said, tmp_path):
    for name, text in {
        "ethtool": (
            "case $1 in -c) printf 'Adaptive RX: on  TX: off\\nrx-usecs:\\t3\\ntx-usecs:\\tn/a\\n';; "
            "-a) printf 'RX:\\t\\ton\\n';; "
            "-k) printf 'rx-checksumming: on [fixed]\\ntcp-segmentation-offload: on\\n'; "
            "printf '\\ttx-tcp6-segmentation: on\\ngeneric-segmentation-offload: off [requested on]\\n';; "
            "-g) printf 'Ring:\\nPre-set maximums:\\nRX:\\t256\\nRX Mini:\\tn/a\\nTX:\\t256\\n'; "
            "printf 'Current hardware settings:\\nRX:\\t16\\nRX Mini:\\tn/a\\nTX:\\t64\\n';; "
            "-S) printf '     Rx CRC Errors: 2\\n     rx_dropped: 0\\n';; esac"
        ),
        "tc": (
            "case $1-$3 in filter-ingress) printf 'filter parent 1:\\n  match 1\\n';; "
            "filter-*) ;; *) echo 'qdisc tbf 8001: root refcnt 2 rate 100Mbit'; "
            "echo 'qdisc fq 8002: parent :1 maxrate 1Mbit';; esac"
        ),
        "ip": "echo '3: eth5: <UP> qdisc mq master br0'; echo ' gso_max_segs 1 gro_max_size 9'",
    }.items():
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "bin" / name).chmod(0o755)
    card = "sys/devices/platform/x/net/eth5"
    tree = {
        f"{card}/mtu": "1500\n",
        "proc/net/snmp": "Tcp: RtoAlgorithm\nTcp: 1 200 120000 -1 8 0 0 0 3 1180 1234 12 0 3 0\n",
    }
    text = said(tree, "cpsw", "sys/class/net/eth5", card, cpsw={"interface": "eth5"})
    found = look.parse(text)
    assert found.shown == {
        "net.mtu": 1500,
        "net.master": "br0",
        "net.gso_max_segs": 1,
        "net.gro_max_size": 9,
        "ethtool-k.tcp-segmentation-offload": "on",
        "ethtool-k.generic-segmentation-offload": "off",
        "ethtool-c.Adaptive_RX": "on  TX: off",
        "ethtool-c.rx-usecs": 3,
        "ethtool-a.RX": "on",
        "ethtool-g.RX": 16,
        "ethtool-g.TX": 64,
        "tc": "qdisc tbf 8001: root refcnt 2 rate 100Mbit",
        "tc_part": "fq 8002: parent :1 maxrate 1Mbit",
        "tc_filters": 2,
    }
    assert found.counters == TICKS | {"ethtool-S.Rx_CRC_Errors": 2, "tcp_sent": 1234, "tcp_sent_again": 12}


@pytest.mark.parametrize("file", sorted(DATA.glob("*.txt")), ids=lambda file: file.stem)
def test_recorded_boards(file):
    found = look.parse(file.read_text())
    wanted = json.loads(file.with_suffix(".json").read_text())
    assert msgspec.to_builtins(found.shown) == wanted["shown"]
    assert set(found.counters) == set(wanted["counters"])
    assert found.uptime_s == wanted["uptime_s"]


@pytest.mark.parametrize("file", sorted(DATA.glob("*.after")), ids=lambda file: file.stem)
def test_a_second_look_a_second_later_finds_a_healthy_board(file):
    before, after = (look.parse(f.read_text()) for f in (file.with_suffix(".txt"), file))
    state = look.between(before, after)
    assert (state.seconds or 0) > 0
    assert not any(name.startswith(("queue.", "card.", "mmc.", "crypto.")) for name in state.changed)
    assert rules.judge(state, ["dd"]) == []


@pytest.mark.parametrize(
    "text",
    [
        "\0" * 5000,
        "/proc/uptime inf nan",
        "/proc/uptime 1e9 1",
        "/proc/stat intr\n/proc/stat cpu  1 2",
        "/proc/1/stat 99999999999999999999 x\n/proc/1/stat\n/proc/1/stat -",
        "/proc/sys/net/ipv4/uptime x",
        "ethtool -k eth0 : on\nethtool -S eth0 " + "x" * 500 + ": 1",
        "/sys/devices/../../etc/passwd root",
        "\n".join(f"/sys/devices/x/queue/q{n} {'z' * 400}" for n in range(9000)),
    ],
)
def test_a_hostile_look_has_no_more_than_text_of_limited_size(text):
    found = look.parse(text)
    assert len(found.shown) <= 2000
    assert all(len(str(value)) <= 400 for value in found.shown.values())
    assert all(len(name) < 500 for name in (*found.shown, *found.counters))
    assert found.uptime_s is None


def test_between_two_looks_is_what_changed_and_how_much_was_counted():
    before = look.BoardLook({"a": 1, "b": "x", "gone": 1}, {"n": 5, "m": 1}, {("7", "p"): 50}, 10.0)
    after = look.BoardLook(
        {"a": 1, "b": "y", "new": 2}, {"n": 9, "m": 1, "k": 3}, {("7", "p"): 150, ("8", "q"): 30}, 14.5
    )
    state = look.between(before, after, (0.99, 1.0))
    assert state == State(
        shown={"a": 1, "b": "x", "gone": 1},
        changed={"b": "y", "gone": None, "new": 2},
        counted={"n": 4, "k": 3},
        beside={"p (7)": 1.0, "q (8)": 0.3},
        seconds=4.5,
        clock=(0.99, 1.0),
    )
    assert (state.after("b"), state.after("a"), state.after("gone")) == ("y", 1, None)


def test_the_whole_life_of_a_child_that_ended_is_no_load_of_the_case():
    before = look.BoardLook({"cpu.online": "0-1"}, {}, {("7", "make"): 0, ("8", "sh"): 0}, 10.0)
    after = look.BoardLook({"cpu.online": "0-1"}, {}, {("7", "make"): 3805, ("8", "sh"): 400}, 15.0)
    assert look.between(before, after).beside == {"sh (8)": 4.0}  # two CPUs have 10 s in five


def test_the_registers_of_an_emmc_are_not_said_of_a_card(said):
    card = CARD.replace("mmc0", "mmc1").replace("fa10000", "fa00000")
    cards = {f"{card}/type": "SD\n", "sys/kernel/debug/mmc1/ios": "clock:\t\t50000000 Hz\n"}
    disks = (("mmcblk0", CARD), ("mmcblk1", card))
    tree = {**TREE, **cards, f"{card}/block/mmcblk1/queue/scheduler": "[none]\n"}
    for driver, (disk, place) in zip(("emmc", "mmcsd"), disks, strict=True):
        link = f"sys/class/block/{disk}"
        text = said(
            tree,
            driver,
            link,
            f"{place}/block/{disk}",
            boot={"medium": "nvme"},
            **{driver: {"scratch": f"/dev/{disk}"}},
        )
        assert ("mmc.ext_csd" in look.parse(text).shown) == (driver == "emmc")
