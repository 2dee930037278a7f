#: prepare
# Sets every CPU's governor, after putting back an interrupted run's.
@put_back; for p in /sys/devices/system/cpu/cpufreq/policy*; do
  f=$p/scaling_governor; [ -w $f ] || continue;
  read -r governor <$f && echo "$f $governor" >>@saved && echo @governor >$f &&
  read -r set <$f && [ "$set" = @governor ] ||
  { echo "$f does not take @governor: enable that governor in the kernel"; exit 3; };
done

#: put_back
if [ -e @saved ]; then
  while read -r file governor; do echo $governor >$file || exit 3; done <@saved && rm @saved;
fi
