"""Mistakes that a writer of a guide commits: each makes of one table the texts that have it."""

import re
from dataclasses import dataclass

MARKS = "-^\"~'"
CAPTIONS = (
    ("EXT4", "EXT3"),
    ("EXT2", "EXT4"),
    ("VFAT", "EXT2"),
    ("Egress", "Ingress"),
    ("Capture", "Playback"),
    ("FIO ", ""),
    ("UDP", "TCP"),
    ("CPSW", "ICSSG"),
    ("READ", "WRITE"),
    ("RAW", "EXT4"),
    ("EMMC", "MMC"),
    ("TwoCore", ""),
    ("Dhrystone", "Whetstone"),
    ("Stream", "Linpack"),
    ("CPU Load", "Performance"),
)
HEADINGS = (
    ("EXT4", "EXT3"),
    ("EXT2", "VFAT"),
    ("EMMC", "MMCSD"),
    ("CPSW", "ICSSG"),
    ("OSPI", "EMMC"),
    ("MMC ", "EMMC "),
    ("LMBench", "NBench"),
    ("USB", "SATA"),
)
HEADER_UNITS = (
    ("Mbytes", "Kbytes"),
    ("Kbytes", "Mbytes"),
    ("Mbits", "Gbits"),
    ("Mbps", "Kbps"),
    ("KBytes", "MBytes"),
    ("MB/sec", "KB/sec"),
    ("mW", "W"),
    ("(%)", "(MHz)"),
)
"""What a writer may take for each other."""


@dataclass(frozen=True)
class Piece:
    """One table taken out of a guide: where it stands, and its text, cell by cell."""

    guide: str
    title: str
    section: tuple[str, ...]
    caption: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int
    benchmark: str

    def text(self):
        heading = "\n".join(
            f"{name}\n{MARKS[depth] * len(name)}\n" for depth, name in enumerate(self.section)
        )
        rows = "\n".join(f"    {line(row)}" for row in self.rows)
        return f"{heading}\n.. csv-table:: {self.caption}\n    :header: {line(self.header)}\n\n{rows}\n\n"


def line(cells):
    return ",".join(f'"{cell}"' for cell in cells)


def replaced(piece, **changes):
    return Piece(**{**vars(piece), **changes}).text()


def cell(piece, row, column, text):
    rows = [list(cells) for cells in piece.rows]
    rows[row][column] = text
    return replaced(piece, rows=tuple(map(tuple, rows)))


def row(piece, number, cells):
    rows = list(piece.rows)
    rows[number : number + 1] = [tuple(some) for some in cells]
    return replaced(piece, rows=tuple(rows))


def header(piece, cells):
    return replaced(piece, header=tuple(cells))


def figures(piece):
    """Row and column of one figure in each column, from rows up and down the table."""
    for column in range(piece.keys, len(piece.header)):
        there = [n for n, cells in enumerate(piece.rows) if re.match(r"-?\d", cells[column])]
        if there:
            yield there[column % len(there)], column


def each_figure(change):
    def mistakes(piece):
        for number, column in figures(piece):
            new = change(piece.rows[number][column])
            if new is not None:
                yield cell(piece, number, column, new)

    return mistakes


def bounds(text):
    match = re.fullmatch(r"(\S+) \(min (\S+), max (\S+)\)", text)
    return match.groups() if match else None


def plain(text):
    return text if re.fullmatch(r"\d+\.\d+", text) else None


def swapped_bounds(text):
    found = bounds(text)
    return found and f"{found[0]} (min {found[2]}, max {found[1]})"


def lost_digit(text):
    found = bounds(text)
    if not found or len(found[0].partition(".")[0]) < 2:
        return None
    shorter = found[0][1:]
    inside = float(found[1]) <= float(shorter) <= float(found[2])
    return None if inside else f"{shorter} (min {found[1]}, max {found[2]})"


def one_bound(text):
    found = bounds(text)
    return found and f"{found[0]} (min {found[1]})"


def short(piece):
    for number in {0, len(piece.rows) // 2, len(piece.rows) - 1}:
        for column in {piece.keys, len(piece.header) - 1}:
            cells = piece.rows[number]
            yield row(piece, number, [cells[:column] + cells[column + 1 :]])


def long(piece):
    yield row(piece, 0, [(*piece.rows[0][: piece.keys], "1.00", *piece.rows[0][piece.keys :])])


def dedented(piece):
    if len(piece.rows) > 1:
        last = line(piece.rows[-1])
        changed = line((*piece.rows[-1][: piece.keys], *("1.23" for _ in piece.header[piece.keys :])))
        yield replaced(piece).replace(f"    {last}", changed)


def duplicate(piece):
    number, column = next(figures(piece), (0, piece.keys))
    again = list(piece.rows[number])
    again[column] = "7.77"
    if again[column] != piece.rows[number][column]:
        yield row(piece, number, [piece.rows[number], again])
        yield row(piece, number, [again, piece.rows[number]])


def misspelt_board(piece):
    for number, text in enumerate(piece.header):
        board, colon, title = text.partition(":")
        if colon and " " not in board and len(board) > 4:
            cells = list(piece.header)
            cells[number] = f"{board[:-2]}{board[-1]}{board[-2]}:{title}"
            yield header(piece, cells)
            return


def outside_key(piece):
    for number in {0, len(piece.rows) - 1}:
        for column in range(piece.keys):
            key = piece.rows[number][column]
            # One more than a size is a slip; a rail or a resolution has any name.
            if re.fullmatch(r"[0-9]+[km]?", key):
                yield cell(piece, number, column, key.replace(key[0], f"{key[0]}1", 1))


def misspelt_key(piece):
    for number in {0, len(piece.rows) - 1}:
        key = piece.rows[number][0]
        if re.fullmatch(r"[a-z_]{4,}.*\)", key):
            yield cell(piece, number, 0, key[0] + key[2] + key[1] + key[3:])


def negative(text):
    return f"-{text}" if plain(text) and float(text) else None


def hundredfold_load(piece):
    for number, column in figures(piece):
        if "%" in piece.header[column] or "CPU Load" in piece.header[column]:
            text = plain(piece.rows[number][column])
            if text and float(text) > 2:
                yield cell(piece, number, column, f"{float(text) * 100:.2f}")


def no_packets(piece):
    for number, column in figures(piece):
        if "Packets" in piece.header[column]:
            yield cell(piece, number, column, "0.00")


def sibling_caption(piece):
    for a, b in CAPTIONS:
        if a in piece.caption:
            yield replaced(piece, caption=piece.caption.replace(a, b))


def sibling_section(piece):
    for a, b in HEADINGS:
        for number, name in enumerate(piece.section):
            if a in name:
                section = list(piece.section)
                section[number] = name.replace(a, b)
                if piece.caption or number == len(section) - 1:
                    yield replaced(piece, section=tuple(section))


def sibling_rows(piece):
    fio, sizes = ("1m", "4m", "4k", "256k"), ("102400", "262144", "524288", "1048576")
    for mine, other in ((fio, sizes), (sizes, fio)):
        if piece.rows and piece.rows[0][0] == mine[0] and piece.caption:
            rows = [(key, *cells[1:]) for key, cells in zip(other, piece.rows, strict=False)]
            yield replaced(piece, rows=tuple(rows))


def header_shorter(piece):
    if len(piece.header) > piece.keys + 1:
        yield header(piece, piece.header[:-1])


def header_twice(piece):
    yield header(piece, (*piece.header[: piece.keys + 1], *piece.header[piece.keys :]))


def header_swapped(piece):
    for number in range(piece.keys, len(piece.header) - 1):
        cells = list(piece.header)
        cells[number], cells[number + 1] = cells[number + 1], cells[number]
        if cells[number].partition(":")[0] == cells[number + 1].partition(":")[0]:
            yield header(piece, cells)


def header_unit(piece):
    for a, b in HEADER_UNITS:
        cells = [text.replace(a, b) for text in piece.header]
        if cells != list(piece.header):
            yield header(piece, cells)


def row_unit(piece):
    for number in {0, len(piece.rows) // 2}:
        key = piece.rows[number][0]
        for a, b in (
            ("MB/s", "GB/s"),
            ("mb/s", "kb/s"),
            ("(us)", "(ms)"),
            ("(ns)", "(us)"),
            ("microsec", "nanosec"),
            ("workloads/", "workloads/min"),
        ):
            if a in key:
                yield cell(piece, number, 0, key.replace(a, b))


def board_lost(piece):
    named = [n for n, text in enumerate(piece.header) if re.match(r"[\w.-]+: ", text)]
    if named:
        cells = list(piece.header)
        cells[named[-1]] = cells[named[-1]].partition(": ")[2]
        yield header(piece, cells)


def key_lost(piece):
    yield header(piece, piece.header[1:])
    yield replaced(piece, header=piece.header[1:], rows=tuple(cells[1:] for cells in piece.rows))


def keys_swapped(piece):
    # Side by side, in the order that a guide has them.
    if len(piece.rows) > 2:
        a, b = piece.rows[0], piece.rows[1]
        yield row(row_pair(piece, b[: piece.keys] + a[piece.keys :]), 1, [a[: piece.keys] + b[piece.keys :]])


def row_pair(piece, cells):
    rows = list(piece.rows)
    rows[0] = cells
    return Piece(**{**vars(piece), "rows": tuple(rows)})


def shifted(piece):
    if len(piece.rows) > 2 and len(piece.header) > piece.keys + 1:
        cells = piece.rows[1]
        yield row(piece, 1, [(*cells[: piece.keys], "", *cells[piece.keys : -1])])


def raw(change):
    """Mistakes in the line of a row as it is typed."""

    def mistakes(piece):
        for number in {0, len(piece.rows) - 1}:
            typed = f"    {line(piece.rows[number])}"
            yield piece.text().replace(typed, change(typed))

    return mistakes


def pasted_twice(piece):
    number, column = next(figures(piece), (None, None))
    if number is not None:
        yield (
            piece.text()
            + cell(piece, number, column, "3.21").partition("\n.. csv-table")[1]
            + cell(piece, number, column, "3.21").partition("\n.. csv-table")[2]
        )


def strange_directive(piece):
    text = piece.text()
    before, mark, table = text.partition(".. csv-table::")
    inner = "".join(f"   {one}\n" for one in f"{mark}{table}".splitlines())
    yield f"{before}.. tab:: Figures\n\n{inner}\n" + before


def header_gone(piece):
    yield re.sub(r"    :header: .*\n", "", piece.text())


def mark_before(piece):
    yield "\ufeff" + piece.text()


MISTAKES = {
    "a row lacks a cell": short,
    "a row has a cell more": long,
    "a row behind a dedent": dedented,
    "a row twice, with another figure": duplicate,
    "a board's name misspelt": misspelt_board,
    "a size that is none": outside_key,
    "a row's name misspelt": misspelt_key,
    "a minus": each_figure(negative),
    "a load times hundred": hundredfold_load,
    "no packets": no_packets,
    "another table's caption": sibling_caption,
    "another table's heading": sibling_section,
    "another table's rows": sibling_rows,
    "a byte order mark": mark_before,
    "the header lacks a column": header_shorter,
    "the header has a column twice": header_twice,
    "two headers swapped": header_swapped,
    "another unit in the header": header_unit,
    "another unit in a row": row_unit,
    "a header without its board": board_lost,
    "the key column lost": key_lost,
    "the keys of two rows swapped": keys_swapped,
    "the cells of a row shifted": shifted,
    "bounds swapped": each_figure(swapped_bounds),
    "a digit of the mean lost": each_figure(lost_digit),
    "one of the bounds lost": each_figure(one_bound),
    "the decimal point lost": each_figure(lambda t: t.replace(".", "") if plain(t) else None),
    "a decimal comma": each_figure(lambda t: t.replace(".", ",") if plain(t) else None),
    "a thousands separator": each_figure(
        lambda t: f"{float(t):,.2f}" if plain(t) and float(t) >= 1000 else None
    ),
    "an exponent": each_figure(lambda t: f"{float(t):.2e}" if plain(t) else None),
    "a unit in the cell": each_figure(lambda t: f"{t} MHz"),
    "n/a": each_figure(lambda _: "n/a"),
    "a dash": each_figure(lambda _: "-"),
    "two figures in a cell": each_figure(lambda t: f"{t} {t}"),
    "another script's digits": each_figure(lambda t: t.translate({48 + n: 0x660 + n for n in range(10)})),
    "a typographic minus": each_figure(lambda t: f"\u2212{t}"),
    "a letter O for a zero": each_figure(lambda t: t.replace("0", "O") if "0" in t else None),
    "a quote lost": raw(lambda typed: typed[:-1]),
    "a quote too many": raw(lambda typed: typed.replace('","', '"",""', 1)),
    "semicolons": raw(lambda typed: typed.replace('","', '";"')),
    "a comma lost": raw(lambda typed: typed.replace('","', '""', 1)),
    "a row over two lines": raw(lambda typed: typed.replace('","', '",\n    "', 1)),
    "a tab before the row": raw(lambda typed: "\t" + typed.strip()),
    "the table twice, with another figure": pasted_twice,
    "the table below a directive that is not known": strange_directive,
    "the header lost": header_gone,
}
