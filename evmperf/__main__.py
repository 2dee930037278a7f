"""`python -m evmperf`: the same as the `evmperf` command."""

import sys

from evmperf.cli.main import main

sys.exit(main())
