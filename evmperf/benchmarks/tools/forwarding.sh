#: look
read u x </proc/uptime; read b </sys/class/net/@interface/statistics/rx_bytes; echo $u $b

#: watch
rm -rf @state; mkdir @state && cd @state && OUT=.;
( sleep @settle_s;
  { @look; @before; sleep @end_s; @look; sleep @within_s; @look; sleep @end_s; @after; @look; } >@text_file;
  touch done ) >/dev/null 2>&1 &

#: collect
n=0;
until [ -e @state/done ]; do
  [ $n -lt 60 ] || { echo "the watch does not end"; exit 3; }; n=$((n + 1)); sleep 1;
done;
cd @state && cp @stat_before "$OUT/@stat_before"; cp @stat_after "$OUT/@stat_after"; @frames
