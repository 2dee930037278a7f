"""Audio playback at each sampling rate."""

from evmperf.benchmarks.families.audio import audio_benchmark

BENCHMARK = audio_benchmark(name="audio_playback", title="Audio Playback", capture=False)
