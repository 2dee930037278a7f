#: run
# /tmp of some boards runs no programs: without words the program ends with status 2.
p=; for d in $F /run /dev/shm /var/tmp /root; do
  f=$d/evmperf-gauge;
  echo @packed | base64 -d | gzip -dc >$f && chmod 700 $f && { $f >/dev/null 2>&1; [ $? = 2 ]; } && p=$f && break;
  rm -f $f;
done;
[ -n "$p" ] || { echo "no folder of the board runs evmperf-gauge (base64, gzip, or noexec everywhere)"; exit 3; };
$p @words >"$OUT/@text_file"; r=$?; rm -f $p; exit $r
