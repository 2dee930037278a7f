"""The scratch partition of a boot medium, which an image written over the whole of it removes."""

import re

from evmperf.measure.bench import Shell
from evmperf.model.errors import BoardError

_TIMEOUT_S = 60.0
_MIB = 1 << 20

_SCRIPT = r"""
set -e
disk={disk}
last=$(ls -d /sys/class/block/$disk/${{disk}}p* | wc -l)
printf ',{mib}M\n' | sfdisk --quiet --append --force --no-reread /dev/$disk
number=$((last + 1))
new=${{disk}}p$number
[ -e /sys/class/block/$new ] || partx --add --nr $number /dev/$disk
i=0; while [ ! -b /dev/$new ] && [ $i -lt 50 ]; do sleep 0.1; i=$((i + 1)); done
echo "made /dev/$new $(cat /sys/class/block/$new/size)"
"""
_LOOK = r"""
for p in /sys/class/block/{disk}/{disk}p*; do
  echo "there /dev/$(basename $p) $(cat $p/size) $(cat $p/start)"
done
"""


def make(shell: Shell, root: str, mib: int) -> str:
    """The device of a partition of `mib` MiB behind the image's, made if needed; raises BoardError."""
    disk = re.sub(r"p?\d+$", "", root.removeprefix("/dev/"))
    said = shell.run(_LOOK.format(disk=disk), _TIMEOUT_S).text
    there = re.findall(r"^there (\S+) (\d+) (\d+)", said, re.MULTILINE)
    there.sort(key=lambda found: int(found[2]))
    # The image's last partition is its root: what is behind that is the lab's.
    if there and there[-1][0] != root and int(there[-1][1]) * 512 >= mib * _MIB:
        return str(there[-1][0])
    reply = shell.run(f"sh -c '{_quoted(_SCRIPT.format(disk=disk, mib=mib))}'", _TIMEOUT_S)
    made = re.search(r"^made (\S+) (\d+)", reply.text, re.MULTILINE)
    if made is None or int(made[2]) * 512 < mib * _MIB:
        words = reply.text.strip().splitlines() or ["no answer"]
        raise BoardError(f"no scratch partition of {mib} MiB can be made on /dev/{disk}: {words[-1][:160]}")
    return made[1]


def _quoted(text: str) -> str:
    return text.replace("'", "'\\''")
