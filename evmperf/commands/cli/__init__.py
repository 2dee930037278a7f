"""The `evmperf` command: every subcommand's arguments, loaded when called."""
