[ -e /proc/cmdline ] || mount -t proc proc /proc
[ -e /sys/block ] || mount -t sysfs sysfs /sys
echo cmdline: $(cat /proc/cmdline)
while read -r a b c d e f; do [ "$e" = / ] && r=$c; done </proc/self/mountinfo
echo root: $(readlink /sys/dev/block/$r)
echo type: $(cat /sys/dev/block/$r/../device/type 2>/dev/null)
