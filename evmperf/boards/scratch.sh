#: survey
{
PATH=$PATH:/usr/sbin:/sbin;
for b in /sys/block/mmcblk*; do
    n=${b##*/};
    case $n in *boot*|*rpmb*) continue;; esac;
    echo disk: $n $(cat $b/device/type $b/size $b/ro);
    [ -z "$(ls $b/holders)" ] || echo held: $n;
    for p in $b/$n*p*; do
        echo part: $n /dev/${p##*/} : start=$(cat $p/start), size=$(cat $p/size);
    done;
    LC_ALL=C sfdisk -d /dev/$n 2>&1 | sed "s/^/table: $n /";
done;
command -v sfdisk >/dev/null && echo tool: sfdisk;
} 2>/dev/null
