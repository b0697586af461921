"""One call of the program: its exit status, and errors as one line on standard error."""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import click

from farthing import errors

FAILURE, USAGE, NO_VALUE, INTERRUPTED = 1, 2, 3, 130
STATUS_OF = {  # the first that fits
    errors.NoTrial: NO_VALUE,
    errors.StudyMismatch: USAGE,
    errors.StorageError: FAILURE,
    errors.MeterUnavailable: FAILURE,
    ValueError: USAGE,  # all kinds of arguments that make no sense
}
EXIT_CODES = """\b
Exit status:
  0    the study came to its end (or the question was answered)
  1    something failed: a file, a right, the unexpected
  2    the command line, the space file or the script makes no sense
  3    no trial has succeeded
  130  interrupted by Ctrl-C; the study goes on with `farthing resume`
  143  ended by SIGTERM; the same"""


@dataclass
class Settings:
    """Of the whole program."""

    debug: bool = False


def call(group: click.Group, arguments: Sequence[str] | None) -> int:
    """Run the program; errors become one line on standard error, and an exit status."""
    settings = Settings()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result = group.main(arguments, prog_name="farthing", obj=settings, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted", INTERRUPTED, settings)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED, settings)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        return _fail(f"{error.format_message().rstrip('.')}{hint}", error.exit_code, settings)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Python flushes at its end goes nowhere
        return FAILURE
    except errors.FarthingError as error:
        status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), FAILURE)
        return _fail(str(error), status, settings)
    except (ImportError, OSError) as error:
        return _fail(str(error), FAILURE, settings)
    except Exception as error:
        return _fail(f"unexpected {type(error).__name__}: {error} (--debug shows where)", FAILURE, settings)


def _fail(message: str, status: int, settings: Settings) -> int:
    if settings.debug:
        traceback.print_exc()
    text = "\n  ".join(message.strip().splitlines())
    sys.stderr.write(f"farthing: error: {text}\n")
    return status


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"farthing: warning: {message}\n")
