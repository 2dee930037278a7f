"""The command line of an instrument: its help is its module's docstring."""

import argparse


def parser(module, doc):
    """The parser of a module that starts as `python -m MODULE`."""
    return argparse.ArgumentParser(
        prog=f"python -m {module.removesuffix('.__main__')}",
        description=doc,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def add_names(asked, names):
    """Add the positional argument `names`, for `named`."""
    listed = ", ".join(names).replace("%", "%%")
    asked.add_argument("names", nargs="*", metavar="NAME", help=f"names or parts of names: {listed}")


def named(asked, words, names):
    """The names that a user means: each word is a name or a part of some; no word means all.

    Ends with argparse's exit status and a sentence for a word that is part of no name.
    """
    names = list(names)
    found: list[str] = []
    for word in words:
        meant = [word] if word in names else [name for name in names if word in name]
        if not meant:
            asked.error(f"no name contains {word!r}; the names are: {', '.join(names)}")
        found += meant
    return list(dict.fromkeys(found)) or names
