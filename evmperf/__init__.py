"""evmperf: the hardware-in-the-loop performance lab for TI evaluation modules."""

__version__ = "0.2.0"
