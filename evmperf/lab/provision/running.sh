# Prints `=NAME` and then what that is, for any shell and busybox.
say() { echo "=$1"; shift; "$@" 2>/dev/null; echo; }
say kernel uname -r
say kernel_version uname -v
say command_line cat /proc/cmdline
say machine cat /etc/hostname
say os_release cat /etc/os-release
say own_release cat /etc/evmperf-release
root=$(awk '$2=="/" && $1!="rootfs"{last=$1} END{print last}' /proc/mounts)
[ "$root" != /dev/root ] || {
  # The kernel mounted it itself: its number says which.
  number=$(awk '$5=="/"{last=$3} END{print last}' /proc/self/mountinfo)
  root=$(readlink -f /sys/dev/block/$number); root=/dev/${root##*/}
}
name=${root##*/}; disk=$(readlink -f /sys/class/block/$name/..); disk=${disk##*/}
say partuuid lsblk -ndo PARTUUID "$root"
echo =medium
for name in /sys/block/$disk/device/cid /sys/block/$disk/device/serial /sys/block/$disk/serial; do
  [ ! -r $name ] || { cat $name; break; }
done
echo
# Of ext4's superblock: mounts for writing, the most before a check, and its magic number.
echo =superblock; dd if="$root" bs=2 skip=538 count=3 2>/dev/null | od -An -v -tu2; echo
