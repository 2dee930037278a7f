"""Runs for other people and programs: `evmperf site`, `push` and `export`."""

import argparse
from pathlib import Path

from evmperf.commands.app import sources
from evmperf.commands.cli.arguments import A_RUN, RESULTS, SOURCE, argument, command, either, tell
from evmperf.explain import ranges
from evmperf.measure.runs.history import among, in_folder, run_folder
from evmperf.model.errors import UsageError
from evmperf.model.units import counted
from evmperf.publish.influx.client import Store, load
from evmperf.publish.influx.push import push, waiting
from evmperf.publish.report import exports

_REFERENCE = "reference"
_FORMATS = (*exports.WRITERS, _REFERENCE)


@command(
    "site",
    RESULTS,
    argument("-o", "--output", type=Path, metavar="DIR", required=True),
    SOURCE,
    argument(
        "--reports",
        default="",
        metavar="ADDRESS|copied",
        help=(
            "where the runs' folders are served, e.g. https://lab/results, or `copied`: copy the "
            "reports into the site (default: where they lie on this host)"
        ),
    ),
)
def _site(options: argparse.Namespace) -> None:
    """Writes static pages of all runs: every board, benchmark and case over time, what changed when and
    what became worse. They open from a file system, on a phone, and in GitLab Pages (docs/site.md).
    """
    from evmperf.publish import site as sites  # noqa: PLC0415  # numpy is slow to import

    with sources.opened(options.source, options.results) as source:
        written = sites.write(options.output, source, options.reports)
    boards = f"{counted(written.runs, 'run')} of {counted(written.boards, 'board')}"
    pages = f"{counted(len(written.pages), 'page')}, the largest {max(written.pages) / 1e6:.2f} MB"
    print(f"{options.output / 'index.html'}: {boards} on {pages}")


@command("push", argument("run", nargs="*", help=f"{A_RUN} (default: what waits)"), RESULTS)
def _push(options: argparse.Namespace) -> None:
    """Sends runs to the InfluxDB that EVMPERF_INFLUX_URL, _TOKEN, _ORG and _BUCKET name. Sending twice
    changes nothing. Without RUN, sends the runs that are not there yet, or not whole.
    """
    runs = [run_folder(run, options.results) for run in options.run]
    with Store(load()) as store:
        for pushed in push(store, runs or waiting(options.results, store.config)):
            if pushed.points:
                print(f"{pushed.folder.name}: {counted(pushed.points, 'point')}")
            for problem in pushed.problems:
                tell(problem)


@command(
    "export",
    argument("run", nargs="*", help=f"{A_RUN} (default: all)"),
    RESULTS,
    SOURCE,
    either(
        argument("--parquet", type=Path, metavar="FILE", help="one row per sample"),
        argument("--csv", type=Path, metavar="FILE", help="the same as text"),
        argument("--junit", type=Path, metavar="FILE", help="one test per case"),
        argument("--openmetrics", type=Path, metavar="FILE", help="every figure, for Prometheus"),
        argument(
            "--reference",
            type=Path,
            metavar="FILE",
            help="what each part of a boot takes, for `evmperf check`",
        ),
        required=True,
    ),
)
def _export(options: argparse.Namespace) -> None:
    """Write runs in the formats of other programs; all runs, or those named. A reference of boots is of runs
    of one board and system with ten boots and more (docs/boot.md).
    """
    (name,) = [name for name in _FORMATS if getattr(options, name)]
    file: Path = getattr(options, name)
    with sources.opened(options.source, options.results) as source:
        runs = {entry.run.id: entry for entry in source.runs()}
        chosen = [
            in_folder(Path(given)) if Path(given, "run.json").is_file() else among(given, runs, source)
            for given in options.run
        ] or list(runs.values())
        if not chosen:
            raise UsageError(f"{source}: holds no runs")
        if name == _REFERENCE:
            ranges.write(file, [entry.folder for entry in chosen if entry.folder])
        else:
            exports.WRITERS[name](chosen, file)
    print(f"{file}: {counted(len(chosen), 'run')}")


@command(
    "import",
    argument(
        "file", type=Path, metavar="FILE", help="a .csv, asv's folder of results, data.js, or mapping.yaml"
    ),
    RESULTS,
    argument("--board", default="", metavar="NAME", help="what was measured, if the file does not say it"),
)
def _import(options: argparse.Namespace) -> None:
    """Makes runs of figures that others measured: the CSV of `evmperf export`, a CSV of series, the results
    of asv, the data.js of github-action-benchmark, an InfluxDB 2 bucket (docs/your-lab.md). They are named
    `foreign-...`, and no measured figure is compared with them. A run that is there is left unchanged.
    """
    from evmperf.commands.app import foreign  # noqa: PLC0415  # for those who have such figures

    new, before = foreign.read(options.file, options.board, options.results)
    boards = ", ".join(sorted({run.board for run in new})) or "nothing new"
    print(
        f"{options.file}: {counted(len(new), 'new run')} ({boards}), {counted(before, 'run')} already there"
    )
