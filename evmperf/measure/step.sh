# Runs a step and sends its outputs (evmperf.measure.shellstep). Sourced with arguments: COMMAND runs and fetches,
# COMMAND quiet fetches only after a failure, COMMAND beside leaves a long archive in a file and says its size,
# none fetches again. Each program started costs a slow board tens of milliseconds, so there are few.

F=@STEP_FOLDER@; OUT=$F/out; export OUT LC_ALL=C
@FURTHER_PROGRAMS@
[ ! -e $F/env ] || . $F/env
if [ $# -gt 0 ]; then
if [ -d $OUT ]; then rm -rf $OUT/*; else mkdir $OUT || exit 125; fi
read -r a b c d g x </proc/$$/stat; echo $g >$F/group
read t0 x </proc/uptime
(eval "$1") </dev/null >$OUT/log 2>&1
r=$?
: >$F/group
read t1 x </proc/uptime
echo "step $r $t0 $t1" >$F/head
fi
read -r h <$F/head && echo "$h"
case "$2$r" in
quiet0) ;;
beside*)
tar -C $OUT -cf - . | gzip -c >$F/archive
s=$(wc -c <$F/archive)
if [ $s -gt @BESIDE_BYTES@ ]; then echo "beside $s"; else base64 <$F/archive; fi ;;
*) tar -C $OUT -cf - . | gzip -c | base64 ;;
esac
