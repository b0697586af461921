"""The command line that all experiments share."""

from __future__ import annotations

from argparse import ArgumentParser, RawDescriptionHelpFormatter


def parser(about: str | None, has_page: bool = False) -> ArgumentParser:
    """A parser that shows the docstring of a module; with `--page` if the page can be made from its data alone."""
    made = ArgumentParser(description=about, formatter_class=RawDescriptionHelpFormatter)
    if has_page:
        made.add_argument("--page", action="store_true", help="only write the page again, from docs/data")
    return made
