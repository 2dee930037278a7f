"""Longer facts about a board for `evmperf compare --facts`: kernel messages, configuration, ...

They are fetched at the end of a run, with all kernel messages, and stored below the run's
`facts/`. A serial console carries 11 kB/s, so large documents (device tree, kernel configuration)
are identified by hash, and fetched only if the lab does not have them.
"""

import hashlib
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from evmperf.boards import yamlfile

FOLDER = "facts"
"""Below a run's folder."""
KNOWN = ".documents"
"""Beside the runs: large documents by their hash."""


_SMALL, _LARGE = (yamlfile.own("measure/documents.yaml")[size] for size in ("small", "large"))
"""Shell text by document."""
_DIGEST = re.compile(r"[0-9a-f]{64}")
_EMPTY = hashlib.sha256(b"").hexdigest()


def gather(folder: Path, perform: Callable[[str], Mapping[str, str]]) -> None:
    """Fetch the documents of a run and store them in its folder. `perform` runs a step on the board
    and returns its files.

    Raises what `perform` raises, and OSError.
    """
    small = [f'{{ {command}; }} >"$OUT/{name}"' for name, command in _SMALL.items()]
    hashes = [f'{{ {command}; }} | sha256sum >"$OUT/{name}"' for name, command in _LARGE.items()]
    files = perform("\n".join([*small, *hashes, "true"]))
    place, shared = folder / FOLDER, folder.parent / KNOWN
    place.mkdir(exist_ok=True)
    for name in _SMALL:
        if text := files.get(name, "").strip():
            (place / name).write_text(text + "\n", encoding="utf-8")
    matches = {name: _DIGEST.match(files.get(name, "")) for name in _LARGE}
    digests = {name: match[0] for name, match in matches.items() if match and match[0] != _EMPTY}
    missing = {name: digest for name, digest in digests.items() if not (shared / digest).exists()}
    if missing:
        commands = (f'{{ {_LARGE[name]}; }} >"$OUT/{name}"' for name in missing)
        contents = perform("\n".join([*commands, "true"]))
        shared.mkdir(exist_ok=True)
        for name, digest in missing.items():
            text = contents.get(name, "")
            if hashlib.sha256(text.encode()).hexdigest() == digest:
                (shared / digest).write_text(text, encoding="utf-8")
    for name, digest in digests.items():
        if (shared / digest).exists():
            (place / name).write_bytes((shared / digest).read_bytes())
