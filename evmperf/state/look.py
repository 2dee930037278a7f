"""One look at a machine: the shell text that reads what matters to a driver, and what it says.

One awk reads all files: each program started costs a slow board milliseconds. What is not there is
passed over, so the same text serves all boards.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from evmperf.boards.board import Board
from evmperf.boards.vocabulary import CABLED
from evmperf.model import limits
from evmperf.model.state import State, Value

FILE = "shown"
"""The output file of a look."""
SECONDS = 20.0
"""After which a look counts as hung."""

_TICKS = 100
"""Of the kernel's USER_HZ in a second, in /proc/stat, /proc/PID/stat and time_in_state."""

_MOST_BESIDE = 5
"""Processes that are kept by name."""

_ALWAYS = (
    "/proc/uptime /proc/loadavg /proc/stat /proc/meminfo /proc/pressure/* "
    "/sys/devices/system/cpu/online /sys/devices/system/cpu/present "
    "/sys/devices/system/cpu/cpufreq/policy*/scaling_governor "
    "/sys/devices/system/cpu/cpufreq/policy*/*_*_freq "
    "/sys/devices/system/cpu/cpufreq/policy*/stats/time_in_state "
    "/sys/class/thermal/thermal_zone*/type /sys/class/thermal/thermal_zone*/temp "
    "/sys/class/thermal/cooling_device*/type /sys/class/thermal/cooling_device*/cur_state "
    "/proc/[0-9]*/stat"
)
_RT = (
    "/proc/sys/kernel/sched_rt_runtime_us /sys/devices/system/cpu/isolated"
    " /sys/devices/system/clocksource/clocksource0/current_clocksource"
    " /sys/devices/system/cpu/cpu0/cpuidle/state*/name /sys/devices/system/cpu/cpu0/cpuidle/state*/latency"
    " /sys/devices/system/cpu/cpu*/cpuidle/state*/disable /sys/devices/system/cpu/cpu*/cpuidle/state*/time"
)
_GPU = (
    "/sys/class/drm/*/device/uevent /sys/class/drm/card*-*/status /sys/class/drm/card*-*/modes"
    " /sys/class/devfreq/*/governor /sys/class/devfreq/*/*_freq /sys/class/devfreq/*/available_frequencies"
)
_ALSO = {
    "rt": _RT,
    "ospi": "/sys/kernel/debug/spi-nor/*/params",
    "ipsec": "/proc/crypto",  # OpenSSL's tables name what computed by themselves
    "graphics": _GPU,
    "alsa": "/proc/asound/card*/id /proc/asound/card*/pcm*/sub*/hw_params",
}
"""Files by driver whose places every board has alike."""
_PCI = "current_link_speed max_link_speed current_link_width max_link_width aer_dev_correctable"
_QUEUE = "scheduler read_ahead_kb write_cache nr_requests max_sectors_kb"
_ABOVE = {
    "emmc": "type name fwrev life_time pre_eol_info cmdq_en",
    "mmcsd": "type name",
    "usb": f"speed version uevent {_PCI}",
    "pcie": f"model firmware_rev {_PCI}",
    "sata": "model",
    "msata": "model",
    "ufs": "model " + " ".join(f"power_info/{word}" for word in ("gear", "lane", "mode", "rate")),
}
"""What the folders above a driver's disk in sysfs may have."""
_NET = (*CABLED, "pcie")
_CABLE = ("tc,qdisc,show,dev", "ethtool,-k", "ethtool,-c", "ethtool,-a", "ethtool,-S")
"""Commands that the look runs for a network interface."""
_LINK = "speed duplex mtu " + " ".join(
    f"statistics/{way}_{what}"
    for way in ("rx", "tx")
    for what in ("bytes", "packets", "errors", "dropped", "crc_errors", "fifo_errors")
)
_DEBUGGED = ("emmc", "mmcsd", "ospi")

# Where this look mounted debugfs, its end unmounts it.
_MOUNT = (
    "[ -e /sys/kernel/debug/bdi ] || ! mount -t debugfs none /sys/kernel/debug 2>/dev/null || "
    "trap 'umount /sys/kernel/debug' EXIT"
)
_WALK = """\
while [ "${q#/sys/devices/}" != "$q" ]; do
for f in @ABOVE@; do [ ! -e $q/$f ] || w="$w $q/$f"; done
case ${q##*/} in
mmc*:*) c=${q##*/} ;;
mmc[0-9]*) d=/sys/kernel/debug/${q##*/}
w="$w $d/ios $d/caps $d/caps2 $d/err_stats @ONCE@"
{ read -r x <$d/$c/ext_csd && echo "$d/$c/ext_csd $x" >@ONCE@; } 2>/dev/null ;;
esac
q=${q%/*}
done"""

# What does not matter stays on the board: a serial console carries 11 kB/s. Threads of the kernel
# (children of 2) work for who asks them, and the console's shell is ours, with what it started. An
# eMMC's registers are a transfer, 0.3 s on the virtual EVM: they are read once; byte 196 has its modes.
# Of the drivers of an algorithm the kernel takes that of the highest priority. ethtool -k indents the
# parts of a group of offloads, which follow it.
_AWK = r"""
function say(f, l) {
  if (f ~ /\/once_/) { k = index(l, " "); f = substr(l, 1, k - 1); l = substr(l, k + 1) }
  if (f ~ /\/[0-9]+\/stat$/) {
    c = n = l; sub(/.*\) /, "", n); split(n, a, " ")
    if (a[2] ~ ("^" ours "$") || f ~ ("/" ours "/stat$") || a[12] + a[13] < 20) return
    sub(/\) [^)]*$/, "", c); sub(/^[0-9]+ \(/, "", c); l = a[12] + a[13] " " c
  }
  else if (f ~ /proc\/stat$/ && l !~ /^(cpu|intr|ctxt|softirq) /) return
  else if (f ~ /meminfo$/ && l !~ /^(Mem(Total|Avail)|Dirty|Writeback:)/) return
  else if (f ~ /uevent$/ && l !~ /^DRIVER=/ || f ~ /snmp$/ && l !~ /^Tcp: [0-9]/) return
  else if (f ~ /pressure/ && l !~ /^some/ || f ~ /aer_dev/ && l !~ /^TOTAL/) return
  else if (f ~ /\/params$/ && l !~ /^name|[SD]-/) return
  else if (f ~ /ios$/ && l !~ /clock|width|timing|voltage/ || f ~ /err_stats$/ && l ~ / 0$/) return
  else if (f ~ /ext_csd$/) l = substr(l, 393, 2)
  else if (f ~ /modes$/ && seen[f]++ || f ~ /hw_params$/ && l == "closed") return
  else if (f ~ /proc\/crypto$/) {
    split(l, a, / +: /); if (a[1] == "name") alg = a[2]; if (a[1] == "driver") does = a[2]
    if (a[1] == "priority" && a[2] + 0 > best[alg] + 0 && \
      alg ~ /^((cbc|ecb|ctr|xts)\((aes|des3)|gcm|rfc4106|ccm|authenc|hmac\(sha|sha)/) {
      best[alg] = a[2]; by[alg] = does
    }
    return
  }
  else if (f ~ /^ethtool/ && (l ~ /^\t|fixed\]|n\/a/ || f ~ /-S/ && l ~ /: 0$/ || \
    l !~ /(segment|offload|summing|usecs|^Adapt|^[RT]X|[Ee]rr|drop|crc).*:[ \t]/)) return
  print f, substr(l, 1, 90)
}
BEGIN {
  for (i = 1; i < ARGC; i++) {
    f = ARGV[i]; g = ""
    if (f ~ /^[a-z]+,/) { gsub(/,/, " ", f); g = f " 2>/dev/null" }
    if (g) { while ((g | getline l) > 0) say(f, l); close(g) }
    else { while ((getline l < f) > 0) say(f, l); close(f) }
  }
  for (n in by) { l = n; gsub(/[(,]+/, "-", l); gsub(/\)/, "", l); print "/proc/crypto", l ": " by[n] }
}"""


_CLOCKS = (
    "(for d in /sys/bus/spi/devices/*/spi-nor; do d=${d%/*}; "
    "set -- $(od -An -tu1 $d/of_node/spi-max-frequency); "
    "[ $# != 4 ] || echo $d/max_hz $(($1 << 24 | $2 << 16 | $3 << 8 | $4)); done) 2>/dev/null "
    f'>>"$OUT/{FILE}"; true'
)
"""The device tree's limit of a flash's clock, four bytes with the highest first."""


def script(board: Board, driver: str) -> str:
    """The shell text (POSIX sh, busybox too) of a look for a driver; what it says is in FILE.

    Where a device is in sysfs is found out once a boot, and kept below $F.
    """
    disk = board.text(driver, "scratch") if driver in _ABOVE else ""
    name = board.options.cable(driver).interface if driver in _NET else ""
    name = name if _INTERFACE.fullmatch(name) else ""
    kept = f"$F/files_{driver}"
    lines = [_MOUNT] if driver in _DEBUGGED else []
    lines.append(f"if [ -e {kept} ]; then read -r w <{kept}; else w=")
    if disk:
        lines += [
            f"p=$(readlink -f {shlex.quote(disk)}); q=$(readlink -f /sys/class/block/${{p##*/}})",
            "[ ! -e $q/partition ] || q=${q%/*}",
            f'for f in {_QUEUE}; do w="$w $q/queue/$f"; done; w="$w $q/stat"',
            _WALK.replace("@ABOVE@", _ABOVE[driver]).replace("@ONCE@", f"$F/once_{driver}"),
        ]
    if name:
        lines += [
            f"q=$(readlink -f /sys/class/net/{name})",
            # A disk beside the card is at another link.
            _WALK.replace("@ABOVE@", _LINK if disk else f"{_LINK} {_PCI}"),
            f'for f in {" ".join(_CABLE)}; do w="$w $f,{name}"; done',
            'w="$w /proc/net/snmp /proc/sys/net/ipv4/tcp_[rw]mem"',
        ]
    look = _read(f"{_ALWAYS} {_ALSO.get(driver, '')} $w")
    return "\n".join([*lines, f'echo "$w" >{kept}', "fi", look, _CLOCKS if driver == "ospi" else "true"])


_INTERFACE = re.compile(r"[\w.:-]{1,15}")


def script_beside(board: Board, driver: str) -> str:
    """The shell text of a look at the tester's end of a driver's cable; "" where it has none."""
    address = board.options.cable(driver).tester_address if driver in _NET else ""
    if not re.fullmatch(r"[0-9a-fA-F.:]{3,45}", address):
        return ""
    find = f"ip -o addr | awk -v a={address} 'index($4, a \"/\") == 1 {{ print $2; exit }}'"
    return "\n".join(
        [
            f"i=$({find}); n=/sys/class/net/${{i:-none}}",
            f'w=; for f in {" ".join(_CABLE)}; do w="$w $f,${{i:-none}}"; done',
            _read("/proc/uptime /proc/stat /proc/net/snmp $n/speed $n/duplex $n/mtu $w"),
            "true",
        ]
    )


def _read(files: str) -> str:
    return f'awk -v "ours=(2|$$|$PPID)" {shlex.quote(_AWK.strip())} {files} >"$OUT/{FILE}"'


@dataclass(frozen=True)
class BoardLook:
    """What a machine showed at one moment.

    `ticks` are hundredths of a second of CPU time by process (number and name), `uptime_s` its
    clock. `earliest_s` and `latest_s` bound the moment on the lab's clock.
    """

    shown: Mapping[str, Value] = field(default_factory=dict)
    counters: Mapping[str, int] = field(default_factory=dict)
    ticks: Mapping[tuple[str, str], int] = field(default_factory=dict)
    uptime_s: float | None = None
    earliest_s: float = 0.0
    latest_s: float = 0.0


_NAMES: tuple[tuple[str, str], ...] = (
    (r"/sys/devices/system/cpu/cpufreq/(policy\d+)/(?:stats/)?(\w+)", r"cpu.\1.\2"),
    (r"/sys/devices/system/cpu/(cpu\d+)/cpuidle/(\w+)/(\w+)", r"idle.\1.\2.\3"),
    (r"/sys/devices/system/cpu/(\w+)", r"cpu.\1"),
    (r"/sys/class/drm/([\w-]+)/(?:device/)?(\w+)", r"display.\1.\2"),
    (r"/sys/class/devfreq/([\w.-]+)/(\w+)", r"devfreq.\1.\2"),
    (r"/proc/asound/(card\d+)/id", r"alsa.\1"),
    (r"/proc/asound/(card\d+/pcm\w+/sub\d+)/hw_params", r"alsa.\1"),
    (r"/sys/class/thermal/((?:thermal_zone|cooling_device)\d+)/(\w+)", r"\1.\2"),
    (r"/sys/kernel/debug/mmc\d+/(?:mmc\d+:\w+/)?(\w+)", r"mmc.\1"),
    (r"/sys/kernel/debug/spi-nor/([\w.]+)/params", r"spi_nor.\1"),
    (r"/sys/bus/spi/devices/([\w.]+)/(max_hz)", r"spi_nor.\1.\2"),
    (r"/sys/devices/.*/mmc\d+:\w+/(\w+)", r"card.\1"),
    (r"/sys/devices/.*/queue/(\w+)", r"queue.\1"),
    (r"/sys/devices/.*/block/\w+/stat", "disk.stat"),
    (r"/sys/devices/.*/(power_info)/(\w+)", r"ufs.\2"),
    (r"/sys/class/net/[\w.:-]+/(\w+)", r"net.\1"),
    (r"/proc/sys/(?:net/ipv4|kernel)/((?:tcp|sched)_\w+)", r"\1"),
    (r"/proc/(crypto|uptime|loadavg|meminfo|stat|net/snmp|pressure/\w+)", r"\1"),
    (r"/sys/devices/.*/([0-9a-f]{4}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7])/(\w+_link_\w+|aer_\w+)", r"pci.\1.\2"),
    (r"/sys/devices/.*/net/[\w.:-]+/(?:statistics/)?(\w+)", r"net.\1"),
    (r"/sys/devices/.*/\d+-[\d.]+:[\d.]+/uevent", r"usb.interface"),
    (r"/sys/devices/.*/(usb\d+|\d+-[\d.]+)/(\w+)", r"usb.\1.\2"),
    (r"/sys/devices/.*/(\w+)", r"disk.\1"),
    (r"ethtool (-[kcaS]) [\w.:-]+", r"ethtool\1"),
    (r"tc qdisc show dev [\w.:-]+", "tc"),
)
"""A file to the name of what it says."""
_COUNTERS = re.compile(
    r"cpu_|interrupts|context_switches|softirqs|pressure_|tcp_sent|net\.[rt]x_|ethtool-S\.|mmc\.err_stats\."
    r"|disk\.\w+_(?:count|ms)|idle\..*\.time|cpu\.\w+\.time_in_state\.|pci\..*\.aer_"
)
_LISTS = re.compile(
    r"ethtool-\w|mmc\.(?:ios|err_stats)|spi_nor\..+|pci\..*\.aer_\w+|.*time_in_state|crypto|alsa\..*/.*"
)
"""Files of several lines, each a name and a value."""
_FORMS = {
    name: re.compile(pattern)
    for name, pattern in {
        "uptime": r"(?P<uptime>\d{1,10}\.\d{1,9}) .*",
        "loadavg": r"\S+ \S+ \S+ (?P<running>\d+)/.*",
        "meminfo": (
            r"(?:MemTotal: +(?P<memory_kib>\d+)|MemAvailable: +(?P<memory_available_kib>\d+)"
            r"|Dirty: +(?P<memory_dirty_kib>\d+)|Writeback: +(?P<memory_writeback_kib>\d+)) kB"
        ),
        "net/snmp": r"Tcp: (?:-?\d+ ){10}(?P<tcp_sent>\d+) (?P<tcp_sent_again>\d+) .*",
        "stat": (
            r"cpu +(?P<cpu_user>\d+) (?P<cpu_nice>\d+) (?P<cpu_system>\d+) (?P<cpu_idle>\d+) "
            r"(?P<cpu_iowait>\d+) (?P<cpu_irq>\d+) (?P<cpu_softirq>\d+) (?P<cpu_steal>\d+).*"
            r"|intr (?P<interrupts>\d+).*|ctxt (?P<context_switches>\d+)"
            r"|softirq (?P<softirqs>\d+).*"
        ),
        "pressure/cpu": r"some .*total=(?P<pressure_cpu_us>\d+)",
        "pressure/io": r"some .*total=(?P<pressure_io_us>\d+)",
        "pressure/memory": r"some .*total=(?P<pressure_memory_us>\d+)",
        "disk.stat": (
            r" *(?P<disk_read_count>\d+) +\d+ +\d+ +(?P<disk_read_ms>\d+)"
            r" +(?P<disk_write_count>\d+) +\d+ +\d+ +(?P<disk_write_ms>\d+) .*"
        ),
    }.items()
}
"""Lines of several values. Of a disk (the kernel's Documentation/block/stat.rst): requests, and the time
that they waited in all.
"""
_PROCESS = re.compile(r"/proc/(\d{1,10})/stat")
_LINE = re.compile(r"(/\S{1,300}|ethtool -\w \S{1,15}|tc qdisc show dev \S{1,15}) (.*)")
_PAIR = re.compile(r"[#\s]*([^:\t]{1,60}?)(?:[:\t]| (?=\S+$))\s*(\S.*?)(?: \[requested \w+\])?")


def parse(text: str) -> BoardLook:
    """What the lines of a look say; a line of no known form is passed over.

    Of the folders above a device, the nearest that has a value says it.
    """
    shown: dict[str, Value] = {}
    counters: dict[str, int] = {}
    ticks: dict[tuple[str, str], int] = {}
    uptime_s = None
    for line in map(_LINE.fullmatch, text.splitlines()[: limits.LOOK_LINES]):
        if line is None:
            continue
        if process := _PROCESS.fullmatch(line[1]):
            used, _, name = line[2].partition(" ")
            if (number := _number(used)) is not None:
                ticks[process[1], name[:32]] = number
            continue
        for name, value in _named(line[1], line[2]):
            number = _number(value)
            if name == "uptime":
                uptime_s = float(value)
            elif not _COUNTERS.match(name):
                shown.setdefault(name, value[: limits.LOOK_CHARS] if number is None else number)
            elif number is not None:
                counters.setdefault(name, number)
    return BoardLook(shown, counters, ticks, uptime_s)


def _number(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?\d{1,18}", text) else None


def _named(file: str, said: str) -> list[tuple[str, str]]:
    """The names and values of one line of a file."""
    for pattern, name in _NAMES:
        if place := re.fullmatch(pattern, file):
            base = place.expand(name)
            if form := _FORMS.get(base):
                found = form.fullmatch(said)
                groups = found.groupdict() if found else {}
                return [(n.replace("disk_", "disk."), value) for n, value in groups.items() if value]
            if not _LISTS.fullmatch(base):
                return [(base, said.strip())]
            pair = _PAIR.fullmatch(said)
            return [(f"{base}.{_UNNAMED.sub('_', pair[1])}", pair[2].strip())] if pair else []
    return []


_UNNAMED = re.compile(r"[^\w.-]+")


def between(before: BoardLook, after: BoardLook, clock: tuple[float, float] | None = None) -> State:
    """The state around a case from the looks before and after it, on one boot."""
    names = [*before.shown, *(name for name in after.shown if name not in before.shown)]
    # Counters of errors are shown only once there is one.
    counted = {name: count - before.counters.get(name, 0) for name, count in after.counters.items()}
    ran = {key: ticks - before.ticks.get(key, 0) for key, ticks in after.ticks.items()}
    then, now = before.uptime_s, after.uptime_s
    return State(
        shown=before.shown,
        changed={n: after.shown.get(n) for n in names if after.shown.get(n) != before.shown.get(n)},
        counted={name: rise for name, rise in counted.items() if rise > 0},
        beside={
            f"{name} ({number})": ticks / _TICKS
            for (number, name), ticks in sorted(ran.items(), key=lambda item: -item[1])[:_MOST_BESIDE]
            if ticks > 0
        },
        seconds=None if then is None or now is None else round(now - then, 2),
        clock=clock,
    )
