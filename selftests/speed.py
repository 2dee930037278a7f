"""`python -m selftests.speed [NAME...]`: how fast evmperf itself is (selftests/instruments/speed)."""

import sys

from selftests.instruments.speed.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
