"""Declarations of benchmarks in `.yaml` files beside the modules that have their steps."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from evmperf.benchmarks.benchmark import Benchmark, Option, Place, Profile, noted
from evmperf.benchmarks.families.processor import perf
from evmperf.boards import yamlfile
from evmperf.model.results import Direction, Metric, ParamValue
from evmperf.model.units import Unit


class Declaration(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What a file says of a benchmark: fields of `Benchmark`, and what makes its profiles and conditions."""

    driver: str
    title: str
    section: tuple[str, ...]
    metrics: tuple[Metric, ...] = ()
    tools: tuple[str, ...] = ()
    tester_tools: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    place: Place = Place.SHELL
    version: int = 1
    rows: dict[str, tuple[ParamValue, ...]] = {}
    """Parameters by which the rows differ: all combinations."""
    perf: dict[str, tuple[Unit, Direction, float, float]] = {}
    """Rows with one column: the labels, with the column's unit, direction and plausible range."""
    quick: dict[str, tuple[ParamValue, ...]] = {}
    """Other values of these in the profile `quick`."""
    params: dict[str, ParamValue | tuple[ParamValue, ParamValue]] = {}
    """Parameters of all rows, of a pair of which each profile has one."""
    repeats: tuple[int, int] = (1, 1)
    noted: tuple[str, ...] = ()
    """Options of the driver that are conditions."""


def declared(module: str) -> Mapping[str, dict[str, Any]]:
    """Arguments of `Benchmark`, by name, from the `.yaml` file beside a module."""
    data = yamlfile.read(Path(module).with_suffix(".yaml"))
    return {
        name: _arguments(name, declaration)
        for name, declaration in msgspec.convert(data, dict[str, Declaration]).items()
    }


def _arguments(name: str, declaration: Declaration) -> dict[str, object]:
    same = Benchmark.__dataclass_fields__.keys() & Declaration.__struct_fields__
    arguments = {"name": name, **{word: value for word in same if (value := getattr(declaration, word))}}
    columns = {label: (perf(*column),) for label, column in declaration.perf.items()}
    if columns:
        arguments["metrics"] = next(iter(columns.values()))
    # Rows that are all alike have the table's column.
    own = columns if len(set(columns.values())) > 1 else {}
    if rows := declaration.rows or ({"benchmark": tuple(columns)} if columns else {}):
        arguments["profiles"] = Profile.crossed(
            rows, declaration.quick, own, repeats=declaration.repeats, **declaration.params
        )
    if declaration.noted:
        arguments["conditions"] = noted(declaration.driver, *declaration.noted)
    return arguments
