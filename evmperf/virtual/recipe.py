"""A variant's recipe: the YAML file and the files beside it, and hashes over them."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from evmperf.errors import UsageError
from evmperf.virtual import paths

RECIPE_VERSION = 1
"""Raise it when the builder modules make something else of the same recipe."""

_SECTIONS = ("qemu", "uboot", "rootfs", "kernel", "initrd", "disks", "arguments")


@dataclass(frozen=True)
class Recipe:
    """What one variant is made of."""

    variant: str
    folder: Path
    data: dict[str, Any]

    @classmethod
    def read(cls, variant: str) -> Recipe:
        """Read `<recipes>/<variant>/variant.yaml`."""
        folder = paths.recipes_dir() / variant
        file = folder / "variant.yaml"
        if not variant or "/" in variant or not file.is_file():
            known = sorted(p.parent.name for p in paths.recipes_dir().glob("*/variant.yaml"))
            raise UsageError(
                f"There is no virtual board {variant!r}: {file} is missing; "
                f"known are {', '.join(known) or 'none'}."
            )
        try:
            data = yaml.safe_load(file.read_text())
        except yaml.YAMLError as error:
            why = " ".join(str(error).split())
            raise UsageError(f"{file} is not YAML; correct this: {why}.") from error
        missing = [s for s in _SECTIONS if not isinstance(data, dict) or s not in data]
        if missing:
            raise UsageError(f"{file} lacks {', '.join(missing)}; add what is missing.")
        return cls(variant, folder, data)

    def file(self, name: str) -> Path:
        """Return a file or folder that the recipe names, relative to the variant's folder."""
        path = self.folder / name
        if not path.exists():
            raise UsageError(f"{self.folder}/variant.yaml names {name}, which is not there.")
        return path

    def hash(self, *sections: str, files: list[str] | None = None) -> str:
        """Return 12 hex digits over sections and files; over the whole folder without any."""
        digest = hashlib.sha256(f"{RECIPE_VERSION}\n".encode())
        if sections:
            chosen: Any = {s: self.data[s] for s in sections}
            inputs = [path for name in files or [] for path in _files(self.file(name))]
        else:
            chosen = self.data
            inputs = [p for p in _files(self.folder) if p.name != "variant.yaml"]
        digest.update(json.dumps(chosen, sort_keys=True).encode())
        for path in inputs:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            executable = bool(path.stat().st_mode & 0o100)
            digest.update(f"\n{path.relative_to(self.folder)} {executable} {content}".encode())
        return digest.hexdigest()[:12]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return sorted(p for p in path.rglob("*") if p.is_file() and not p.name.endswith(("~", ".swp")))
