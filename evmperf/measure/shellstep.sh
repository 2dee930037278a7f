#: take
# Takes a folder on the machine, or prints who holds it: who runs a step there (its process group lives), or who
# from another host than this began, or ended a step, less than some seconds ago. A holder of an earlier boot is none.
# Root takes no folder, and no word, of another user of the machine: bash runs commands in what it calculates.
F=@folder; read -r now x </proc/uptime; read -r id </proc/sys/kernel/random/boot_id;
[ ! -L $F ] && { [ ! -e $F ] || [ -O $F ]; } || { echo "it is there, and another user's"; false; } && {
{
read -r boot began step host who <$F/holder && [ "$boot" = $id ] && [ "$step" != @step ] && {
read -r g <$F/group && kill -0 "-$g" || {
[ "$host" != @host ] && { read -r s r x began <$F/head || :; } &&
case ${began%.*} in ''|*[!0-9]*) false ;; *) [ $((${now%.*} - ${began%.*})) -lt @quiet_s ] ;; esac; }; };
} 2>/dev/null && echo "held by $who" || {
mkdir -p $F && rm -f $F/step-* $F/head $F/env && echo "$id $now @step @host @who" >$F/holder; }; }

#: leave
# Removes the folder, if this process has it still, nothing is mounted below it, and nothing there is to be put back.
F=@folder; read -r boot began step x <$F/holder && [ "$step" = @step ] && ! grep -q " $F/" /proc/mounts &&
[ ! -e $F/governors ] && [ ! -e $F/compositor-stopped ] && rm -rf $F
