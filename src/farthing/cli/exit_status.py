"""One call of the program: errors become one line on standard error, and an exit status."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import click

from farthing import errors
from farthing.cli import streams
from farthing.cli.process_start import process_start
from farthing.cli.words import in_options

FAILURE, USAGE, NO_VALUE = 1, 2, 3
INTERRUPTED = 128 + 2  # as shells report a process that SIGINT ended
STATUS_OF = {  # the first that fits
    errors.NoTrial: NO_VALUE,
    errors.StudyMismatch: USAGE,
    errors.StorageError: FAILURE,
    errors.MeterUnavailable: FAILURE,
    errors.EveryTrialFailed: NO_VALUE,
    ValueError: USAGE,  # every kind of invalid argument
}
EXIT_CODES = """\b
Exit status:
  0    success
  1    something failed: a file cannot be read or written, or an unexpected error
  2    invalid command line, space file or script; or `resume` needs --yes
  3    no trial has succeeded, or the first ones all failed (--max-failures)
  129  ended by SIGHUP, as when a terminal is closed; continue with `farthing resume`
  130  interrupted by Ctrl-C; continue with `farthing resume`
  143  ended by SIGTERM; continue with `farthing resume`"""


@dataclass
class GlobalOptions:
    """Options of the whole program, and the words it was called with."""

    debug: bool = False
    arguments: tuple[str, ...] = ()
    began: float = field(default_factory=time.perf_counter)  # what comes after it, a run counts


def call(group: click.Group, arguments: Sequence[str] | None, imported: float | None = None) -> int:
    """Run the program, and return its exit status.

    imported  when this package was imported, if that was for this call
    """
    if arguments is None:
        streams.prepare_streams()
    options = GlobalOptions(arguments=tuple(sys.argv[1:] if arguments is None else arguments))
    if imported is not None:
        options.began = process_start(imported)
    status = _status_of(group, options)
    unwritten = streams.flush_streams()
    if unwritten is not None and not isinstance(unwritten, BrokenPipeError):
        streams.say(f"farthing: error: standard output: {unwritten.strerror}")
    if status == INTERRUPTED and arguments is None:
        _end_by_sigint()
    return status or (FAILURE if unwritten is not None else 0)


def _end_by_sigint() -> None:
    """End as Ctrl-C ends any program: by the signal. A shell goes on with its loop or script after a program that only
    returns 130, because that program has dealt with the signal in its own way."""
    if os.name == "posix":
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)


def _status_of(group: click.Group, options: GlobalOptions) -> int:
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            result = group.main(list(options.arguments), prog_name="farthing", obj=options, standalone_mode=False)
        return result if isinstance(result, int) else 0
    except (click.exceptions.Abort, KeyboardInterrupt):
        return _fail("interrupted", INTERRUPTED, options)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context is not None else ""
        return _fail(f"{error.format_message().rstrip('.')}{hint}", error.exit_code, options)
    except SystemExit as ended:  # a run that a signal ended, or the end of a completion
        return ended.code if isinstance(ended.code, int) else FAILURE if ended.code else 0
    except BrokenPipeError:  # of a reader that goes away nothing is said
        return FAILURE
    except errors.FarthingError as error:
        status = next((code for kind, code in STATUS_OF.items() if isinstance(error, kind)), FAILURE)
        return _fail(in_options(str(error)), status, options)
    except (ImportError, OSError) as error:
        return _fail(str(error), FAILURE, options)
    except Exception as error:
        return _fail(f"unexpected {type(error).__name__}: {error} (run with --debug to see where)", FAILURE, options)


def _fail(message: str, status: int, options: GlobalOptions) -> int:
    if options.debug:
        streams.say(traceback.format_exc().rstrip())
    streams.say(f"farthing: error: {streams.indented(message)}")
    return status


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    streams.warn(in_options(str(message)))
