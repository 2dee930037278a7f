#: start
# Runs a sleep command in the background; fails on a board without proof of sleep.
for f in /sys/class/rtc/rtc0/since_epoch /sys/power/suspend_stats/success; do
  [ -r $f ] || { echo "$f is missing: this kernel does not report whether it slept"; exit 3; };
done;
rm -rf @state; mkdir @state && cd @state || exit 3;
state() {
  read -r up x </proc/uptime; read -r rtc </sys/class/rtc/rtc0/since_epoch;
  read -r good </sys/power/suspend_stats/success; read -r bad </sys/power/suspend_stats/fail;
  echo "$1 $up rtc $rtc success $good fail $bad";
};
state start >state;
(
  sleep @lead_s; state before >>state;
  ( @sleep_command ) >said 2>&1; r=$?;
  # The last line of the command may be unfinished.
  echo >>said; state after >>state; echo "status $r" >>state; mv state done;
) >/dev/null 2>&1 &

#: check
# After the wake-up: what was noted.
cd @state || exit 3;
i=0;
while [ ! -e done ]; do
  i=$((i+1)); [ $i -le @end_s ] || { echo "the sleep command has not ended"; exit 4; }; sleep 1;
done;
{
  cat done; sed 's/^/said /' said;
  for f in dev step; do echo "failed $f $(cat /sys/power/suspend_stats/last_failed_$f)"; done;
  echo end;
} >"$OUT/@text_file"
