"""What the library says of its arguments, in the words of the command line."""

from __future__ import annotations

IN_OPTIONS = {  # the longest first: one is the beginning of another
    "Study.resume(file, budget=...)": "farthing resume FILE --budget TEXT",
    'isolate="spawn"': "--isolate spawn",
    "isolate='spawn'": "--isolate spawn",
    "isolate=False": "--isolate no",
    "isolate=True": "--isolate yes",
    "(space=...)": "(--space FILE)",
    "study_name=...": "--study-name",
    "replace=True": "--replace",
    "max_failures=None": "--max-failures none",
    "max_failures=": "--max-failures ",
    "max_steps=": "--max-steps ",
    "trial_seconds=": "--trial-seconds ",
    "trial_memory=": "--trial-memory ",
}


def in_options(text: str) -> str:
    """A message of the library with the options of `farthing` in the place of its arguments.

    >>> in_options("isolate=False runs the objective here")
    '--isolate no runs the objective here'
    """
    for argument, option in IN_OPTIONS.items():
        text = text.replace(argument, option)
    return text
