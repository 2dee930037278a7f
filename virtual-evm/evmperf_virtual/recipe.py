"""A variant's recipe: its YAML file and the files beside it, what they build on, and hashes."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evmperf.boards import yamlfile
from evmperf.model.errors import UsageError

RECIPE_VERSION = 1
"""Raise it when the builder modules make something else of the same recipe."""

_FILE = "variant.yaml"
_SECTIONS = ("qemu", "uboot", "rootfs", "kernel", "initrd", "disks", "arguments")


@dataclass(frozen=True)
class Recipe:
    """The YAML and files of one variant, over those of the variant it names as `base`."""

    variant: str
    folders: tuple[Path, ...]
    """The variant's own folder, then its base's, and so on."""
    data: dict[str, Any]

    @classmethod
    def read(cls, variant: str) -> Recipe:
        """Read `<recipes>/<variant>/variant.yaml` and what it is based on."""
        folders, data = _read(variant, ())
        missing = [s for s in _SECTIONS if s not in data]
        if missing:
            file = folders[0] / _FILE
            raise UsageError(f"{file} lacks {', '.join(missing)}; add what is missing.")
        return cls(variant, folders, data)

    def file(self, name: str) -> Path:
        """Return a file that the recipe names, of the variant or else of its base."""
        for folder in self.folders:
            if (folder / name).is_file():
                return folder / name
        raise UsageError(f"{self.folders[0] / _FILE} names {name}, but there is no such file.")

    def files(self, name: str = ".") -> dict[str, Path]:
        """Return the files below a folder that the recipe names, by their path in there."""
        paths = {
            str(path.relative_to(folder / name)): path
            for folder in reversed(self.folders)
            for path in (folder / name).rglob("*")
            if path.is_file() and not path.name.endswith(("~", ".swp"))
        }
        if not paths:
            raise UsageError(f"{self.folders[0] / _FILE} names {name}, but there are no files in it.")
        return {name: paths[name] for name in sorted(paths, key=Path)}

    def hash(self, *sections: str, files: list[str] | None = None) -> str:
        """Return 12 hex digits over sections and files; over everything without any."""
        digest = hashlib.sha256(f"{RECIPE_VERSION}\n".encode())
        if sections:
            chosen: Any = {s: self.data[s] for s in sections}
            inputs = {name: self.file(name) for name in files or []}
        else:
            chosen = self.data
            inputs = {n: path for n, path in self.files().items() if n != _FILE}
        digest.update(json.dumps(chosen, sort_keys=True).encode())
        for name, path in inputs.items():
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            executable = bool(path.stat().st_mode & 0o100)
            digest.update(f"\n{name} {executable} {content}".encode())
        return digest.hexdigest()[:12]


def recipes_dir() -> Path:
    """Return the folder with one sub-folder a variant: $EVMPERF_RECIPES or the checkout's."""
    own = os.environ.get("EVMPERF_RECIPES")
    return Path(own).absolute() if own else Path(__file__).parents[1]


def exists(variant: str) -> bool:
    """Whether there is a recipe of that name."""
    return "/" not in variant and (recipes_dir() / variant / _FILE).is_file()


def _read(variant: str, above: tuple[str, ...]) -> tuple[tuple[Path, ...], dict[str, Any]]:
    """Return the folders and the merged data of a variant that those `above` are based on."""
    folder = recipes_dir() / variant
    file = folder / _FILE
    if variant in above:
        raise UsageError(f"{file} is based on itself ({' on '.join([*above, variant])}).")
    if not variant or not exists(variant):
        variants = sorted(p.parent.name for p in recipes_dir().glob(f"*/{_FILE}"))
        raise UsageError(
            f"There is no virtual board {variant!r}: {file} is missing; "
            f"known are {', '.join(variants) or 'none'}."
        )
    data = yamlfile.read(file)
    if not isinstance(data, dict):
        raise UsageError(f"{file} holds no sections; copy those of another variant.")
    base = data.pop("base", None)
    if base is None:
        return (folder,), data
    folders, below = _read(str(base), (*above, variant))
    try:
        return (folder, *folders), _merge(below, data)
    except ValueError as error:
        raise UsageError(f"{file}: {error}; correct it.") from None


def _merge(below: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Merge as RFC 7396, with `KEY+` to add to the list KEY and `KEY-` to take out; raises ValueError."""
    merged = dict(below)
    for key, value in over.items():
        if key.endswith("+"):
            merged[key[:-1]] = [*merged.get(key[:-1], []), *value]
        elif key.endswith("-"):
            kept = list(merged.get(key[:-1], []))
            for entry in value:
                if entry not in kept:
                    raise ValueError(f"{key} removes {entry}, which {key[:-1]} does not have")
                kept.remove(entry)
            merged[key[:-1]] = kept
        elif value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            under = below.get(key)
            merged[key] = _merge(under if isinstance(under, dict) else {}, value)
        else:
            merged[key] = value
    return merged
