"""The dashboard that compares two boards or two releases."""

from evmperf.grafana import flux, parts
from evmperf.runs.measurements import SAMPLE

_SIDES = ("a", "b")
_COLUMNS = ("benchmark", "case", "metric", "unit", *_SIDES, "B / A")


def dashboard() -> parts.Builder:
    """A table of all figures that both sides have, and bars of one metric."""
    builder = parts.Builder(
        "evmperf-compare",
        "Compare",
        "Two boards, two releases, or a board and its published figures: the mean of each case.",
        "now-1y",
    )
    for side in _SIDES:
        name = side.upper()
        builder.choice(f"board_{side}", parts.BOARD[1], label=f"{name}: board")
        of_board = f'r.board == "${{board_{side}}}"'
        builder.choice(f"release_{side}", flux.releases(of_board), label=f"{name}: release")
    both = 'r.board == "${board_a}"'
    builder.choice("driver", flux.tag_values("driver", both))
    chosen = (both, 'r.driver == "${driver}"')
    builder.choice("benchmark", flux.tag_values("benchmark", *chosen))
    of_benchmark = (*chosen, 'r.benchmark == "${benchmark}"')
    builder.choice("metric", flux.tag_values("metric", *of_benchmark))
    builder.choice("case", flux.tag_values("case", *of_benchmark), multi=True)
    return builder.row(
        "Side by side",
        [
            parts.bars("${benchmark}: ${metric}", "The mean of each case that both sides have.", _bars()),
            parts.rows(
                "All figures of ${driver}",
                "Means; B / A is 1 for equal means. evmperf compare tests whether a difference is "
                "significant.",
                _table(),
                _COLUMNS,
                height=16,
            ),
        ],
    )


def _side(side: str, *conditions: str) -> str:
    """Mean of each figure, named by side; includes published figures."""
    return (
        flux.points(
            SAMPLE,
            f'r.board == "${{board_{side}}}"',
            'r.driver == "${driver}"',
            *conditions,
            always=True,
            fields=(f'r.run_release == "${{release_{side}}}"',),
        )
        + '\n|> group(columns: ["benchmark", "case", "metric", "unit"])\n'
        + '|> mean(column: "value") |> group()\n'
        + f"|> map(fn: (r) => ({{r with side: {flux.text(side)}}}))"
    )


def _both(*conditions: str) -> str:
    sides = ", ".join(_SIDES)
    defined = "\n".join(f"{side} = {_side(side, *conditions)}" for side in _SIDES)
    return (
        f"{defined}\nunion(tables: [{sides}])\n|> pivot(\n"
        '    rowKey: ["benchmark", "case", "metric", "unit"], columnKey: ["side"],\n'
        '    valueColumn: "value",\n)\n'
        "|> filter(fn: (r) => exists r.a and exists r.b)"
    )


def _bars() -> str:
    one = ('r.benchmark == "${benchmark}"', 'r.metric == "${metric}"', flux.OF_CASES)
    return (
        f'{_both(*one)}\n|> group()\n|> map(fn: (r) => ({{case: r.case + " (" + r.unit + ")", '
        "A: r.a, B: r.b}))"
    )


def _table() -> str:
    return (
        f"{_both()}\n|> group()\n"
        '|> map(fn: (r) => ({r with "B / A": if r.a == 0.0 then 0.0 else r.b / r.a}))\n'
        '|> sort(columns: ["benchmark", "case", "metric"])'
    )
