"""evmperf: the hardware-in-the-loop performance lab for TI evaluation modules."""

__version__ = "0.3.0"
