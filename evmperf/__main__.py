"""`python -m evmperf`: the same as the `evmperf` command."""

import sys

from evmperf.commands.cli.main import main

sys.exit(main())
