"""The words of evmperf as data: cases, samples, results, figures, verdicts, units, errors."""
