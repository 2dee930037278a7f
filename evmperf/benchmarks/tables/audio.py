"""Audio at each sampling rate."""

from evmperf.benchmarks.families.audio import audio_benchmark

BENCHMARKS = (
    audio_benchmark(name="audio_capture", title="Audio Capture", capture=True),
    audio_benchmark(name="audio_playback", title="Audio Playback", capture=False),
)
