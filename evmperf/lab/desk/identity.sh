#: question
{
echo model: $(tr -d '\0' </proc/device-tree/model);
echo compatible: $(tr '\0' ' ' </proc/device-tree/compatible);
echo soc: $(cat /sys/devices/soc0/family /sys/devices/soc0/machine);
echo os: $(. /etc/os-release; echo $PRETTY_NAME);
echo kernel: $(uname -r);
echo user: $(id -u);
echo login: ${SUDO_USER:-$(id -un)};
[ -O / ] || echo sudo: $(LC_ALL=C sudo -n true 2>&1);
d=$(awk '$2=="/"{print $1}' /proc/mounts | tail -n 1);
d=${d#/dev/};
echo root: $d $(cat /sys/block/${d%%p[0-9]*}/device/type);
for n in /sys/class/net/*; do
    [ ! -e $n/device ] || [ -e $n/wireless ] || [ "$(cat $n/carrier)" != 1 ] ||
    echo link: ${n##*/} $(ip -4 -o address show dev ${n##*/} | awk '{print $4}');
done;
@further;
} 2>/dev/null
