"""One call of the program: errors become one line on standard error, and an exit status."""

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

FAILURE, USAGE, NO_VALUE = 1, 2, 3
INTERRUPTED = 128 + 2  # as shells report a process that SIGINT ended
STATUS_OF = {  # the first that fits
    errors.NoTrial: NO_VALUE,
    errors.StudyMismatch: USAGE,
    errors.StorageError: FAILURE,
    errors.MeterUnavailable: FAILURE,
    ValueError: USAGE,  # every kind of invalid argument
}
EXIT_CODES = """\b
Exit status:
  0    success
  1    something failed: a file cannot be read or written, or an unexpected error
  2    invalid command line, space file or script
  3    no trial has succeeded
  130  interrupted by Ctrl-C; continue with `farthing resume`
  143  ended by SIGTERM; continue with `farthing resume`"""


@dataclass
class GlobalOptions:
    """Options of the whole program."""

    debug: bool = False


def call(group: click.Group, arguments: Sequence[str] | None) -> int:
    """Run the program, and return its exit status."""
    options = GlobalOptions()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result = group.main(arguments, prog_name="farthing", obj=options, standalone_mode=False)
        sys.stdout.flush()
        return result if isinstance(result, int) else 0
    except click.exceptions.Abort:
        return _fail("interrupted", INTERRUPTED, options)
    except KeyboardInterrupt:
        return _fail("interrupted", INTERRUPTED, options)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        return _fail(f"{error.format_message().rstrip('.')}{hint}", error.exit_code, options)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what Python flushes when it exits goes nowhere
        return FAILURE
    except errors.FarthingError as error:
        status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), FAILURE)
        return _fail(str(error), status, options)
    except (ImportError, OSError) as error:
        return _fail(str(error), FAILURE, options)
    except Exception as error:
        return _fail(f"unexpected {type(error).__name__}: {error} (run with --debug to see where)", FAILURE, options)


def _fail(message: str, status: int, options: GlobalOptions) -> int:
    if options.debug:
        traceback.print_exc()
    text = "\n  ".join(message.strip().splitlines())
    sys.stderr.write(f"farthing: error: {text}\n")
    return status


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    sys.stderr.write(f"farthing: warning: {message}\n")
