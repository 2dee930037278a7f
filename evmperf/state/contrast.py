"""What is different between the states of one case in two runs."""

import re
from collections.abc import Iterator

from evmperf.model.run import Run
from evmperf.model.state import State, Value
from evmperf.state.rules import Finding, leading

_SETTINGS = re.compile(
    r"queue\.\w+|disk\.(?:model|firmware_rev)|card\.(?:name|fwrev|cmdq_en)|mmc\.ios\.(?!vdd|signal).*"
    r"|spi_nor\..*|ufs\..*|usb\..*\.(?:speed|interface)|usb\.interface|pci\..*link_\w+"
    r"|tcp_[rw]mem|(?:tester\.)?(?:net\.(?:speed|duplex|mtu)|ethtool-[kca]\..*|tc)"
    r"|cpu\.(?:online|isolated|\w+\.(?:scaling_governor|scaling_m\w+_freq))|sched_rt_runtime_us"
    r"|.*current_clocksource|idle\..*\.disable|crypto\..*|display\..*|alsa\..*"
    r"|devfreq\..*\.(?:governor|m\w+_freq)"
)
"""What somebody set, or what hardware has agreed on."""
_WHILE_USED = re.compile(r"(?:crypto|display|alsa)\..*")
"""What is there only while somebody uses it, and says nothing where it is not."""
_RATES = re.compile(r"(.*(?:clock|speed|width|freq)).*")
"""Settings whose ratio bounds what they cost."""
_NO_LINK = (-1, "unknown", "Unknown", "0 Hz")
"""What an idle port or card says."""
_SLOWER = 3.0
"""How many times longer a disk's requests wait, which is no chance any more."""
_REQUESTS = 20


def between(ours: State, theirs: State, name: str) -> Iterator[Finding]:
    """What is set otherwise than in the state of the run `name`, and what the disk did otherwise."""
    for setting in sorted({*ours.shown, *theirs.shown}):
        if not _SETTINGS.fullmatch(setting):
            continue
        here, there = (_of(state, setting) for state in (ours, theirs))
        if _WHILE_USED.fullmatch(setting) and None in (here, there):
            continue
        if here != there and here not in _NO_LINK and there not in _NO_LINK:
            size = _ratio(here, there) if _RATES.fullmatch(setting) else 0.0
            now, then = ("absent" if value is None else value for value in (here, there))
            yield Finding(setting, f"{setting} is {now}, in {name} it was {then}", size=size)


def arguments(ours: Run, theirs: Run) -> Iterator[Finding]:
    """Words on the kernel's command line that only one of the runs has; what names a disk is no cause."""
    lines = (run.facts.command_line.split() for run in (ours, theirs))
    here, there = ({word for word in line if not word.startswith("root=")} for line in lines)
    for word in sorted(here ^ there if here and there else ()):
        mine = word in here
        reason = f"the kernel's arguments have {'' if mine else 'no '}{word}, unlike {theirs.id}'s"
        yield Finding(f"argument {'+' if mine else '-'}{word}", reason)


def slower(ours: State, theirs: State, name: str) -> Iterator[Finding]:
    """A disk that needs longer for its requests than in the run `name`."""
    for way in ("read", "write"):
        here, there = (_wait_ms(state, way) for state in (ours, theirs))
        if here and there and here > _SLOWER * there:
            reason = f"the disk needed {here:.3g} ms for a {way} request, in {name} {there:.3g} ms"
            yield Finding("device", reason, size=here / there)


def _of(state: State, setting: str) -> Value | None:
    """A setting while the case ran, if one look saw it awake."""
    before, after = state.shown.get(setting), state.after(setting)
    return after if before in _NO_LINK else before


def _ratio(here: Value | None, there: Value | None) -> float:
    low, high = leading(here), leading(there)
    return high / low if low and high and high > low else 0.0


def _wait_ms(state: State, way: str) -> float | None:
    count = state.counted.get(f"disk.{way}_count", 0)
    return state.counted.get(f"disk.{way}_ms", 0) / count if count >= _REQUESTS else None
