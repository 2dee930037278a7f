"""Audio capture at each sampling rate."""

from evmperf.benchmarks.families.audio import audio_benchmark

BENCHMARK = audio_benchmark(name="audio_capture", title="Audio Capture", capture=True)
