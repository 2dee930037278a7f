# Debian keeps LMBench's programs to itself; last, for some are called hello, line or disk.
PATH=$PATH:/usr/lib/lmbench/bin
