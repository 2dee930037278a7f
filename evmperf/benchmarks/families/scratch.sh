#: kind
# Fails unless the partition (`$s` in sysfs) is on `what`, which the condition `holds` tells of its disk `$k`.
k=$s; [ ! -e $k/partition ] || k=${k%/*};
{ @holds; } 2>/dev/null || no "@partition (${k##*/}) is not on @what";

#: fits
# Fails unless a partition may be overwritten; `kind` is the text above, or nothing.
no() { echo "$*: name another scratch partition in the board file"; exit 3; };
d=$(readlink -f @partition); [ -b "$d" ] || no "@partition does not exist";
s=$(readlink -f /sys/class/block/${d##*/}); @{kind}
r=$(readlink -f /sys/dev/block/$(mountpoint -d /));
case "$r/" in "$s"/*) no "@partition holds the mounted root";; esac;
p="${d##*/} $(cd "$s" && ls -d */partition 2>/dev/null | cut -d/ -f1)";
# A device that others are built on (LVM, RAID, encryption) may hold the root indirectly.
for n in $p; do
  [ -z "$(ls /sys/class/block/$n/holders)" ] || no "@partition is in use by another";
done

#: guard
# Like `fits`, and unmounts the partition.
@fits; for n in $p; do while grep -q "^/dev/$n " /proc/mounts; do umount /dev/$n || exit 3; done; done
