#: arm
# Without the engines that a configuration loads, and without Arm's instructions for AES.
export OPENSSL_CONF=/dev/null; export OPENSSL_armcap=0

#: arm_ce
# With them; ends where the processor has none.
export OPENSSL_CONF=/dev/null; grep -qs '^Features.*aes' /proc/cpuinfo || exit 0

#: accelerator
# Chooses the kernel's engine, devcrypto or afalg; ends where neither can.
export OPENSSL_CONF=/dev/null; modprobe -aq cryptodev af_alg algif_skcipher algif_hash;
for e in devcrypto afalg ''; do
  openssl engine -c $e 2>/dev/null | grep -qiw "@algorithm" && break;
done;
[ "$e" ] || exit 0; l="-engine $e"

#: des
# Since 3.0, DES is in a provider of its own.
l=; ! openssl list -providers >/dev/null 2>&1 || l="-provider default -provider legacy"

#: speed
l=; @{chosen}read began x </proc/uptime;
# In a shell of its own, whose times are those of this run alone.
( openssl speed -elapsed -mr -seconds @seconds $l -evp @algorithm >"$OUT/@text_file" 2>&1; r=$?;
  times >"$OUT/@times_file"; exit $r ); r=$?;
read ended x </proc/uptime; echo "$began $ended" >"$OUT/@uptime_file"; @twice;
[ $r = 0 ] || cat "$OUT/@text_file"; exit $r
