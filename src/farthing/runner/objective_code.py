"""The code of an objective as a short text, which changes when somebody edits it.

It is made from bytecode and constants, of the objective and of the functions of its own module that it mentions. Where
the code is does not matter, nor on which line, nor what it says in docstrings; and no data does, neither that of
closures nor that of objects. Bytecode differs between versions of Python, so only codes of one version are compared.
"""

from __future__ import annotations

import functools
import hashlib
import sys
from collections.abc import Iterator
from types import CodeType, FunctionType, MethodType
from typing import Any

VERSION = f"{sys.implementation.name}-{sys.version_info[0]}.{sys.version_info[1]}"
HAS_DOCSTRING = 0x4000000  # of a code object, from Python 3.13 on
OURS = "farthing"  # whose code changes with its version, and is no objective of anybody's
PLAIN = (int, float, complex, str, bytes, bool, type(None), type(Ellipsis))


def code_of(objective: Any) -> str | None:
    """The version of Python and a checksum; None for what has no code that can be seen: a C function, or a program.

    >>> code_of(len) is None
    True
    """
    try:
        first = list(_functions_behind(objective))
        if not first or any(_package(function) == OURS for function in first):
            return None
        checksum = hashlib.blake2b(digest_size=16)
        for function in _with_mentioned(first):
            checksum.update(repr(_described(function.__code__)).encode(errors="replace"))
            checksum.update(repr(_plain(function.__defaults__ or ())).encode(errors="replace"))
        return f"{VERSION}:{checksum.hexdigest()}"
    except Exception:  # whatever an object of the user's makes of being looked at: its code is not known
        return None


def differ(one: str, other: str) -> bool:
    """Whether two codes are of different objectives; it cannot be said of those of two versions of Python."""
    return one != other and one.split(":")[0] == other.split(":")[0]


def _functions_behind(objective: Any) -> Iterator[FunctionType]:
    """The functions that are called when an objective is: those of a class, where it is an object with a `__call__`."""
    while isinstance(objective, functools.partial):
        objective = objective.func
    if isinstance(objective, MethodType):
        objective = objective.__func__
    if isinstance(objective, FunctionType):
        yield objective
    elif isinstance(getattr(objective, "__wrapped__", None), FunctionType):
        yield objective.__wrapped__
    else:
        kinds = [kind for kind in type(objective).__mro__ if kind.__module__ == type(objective).__module__]
        methods = (found for kind in kinds for _, found in sorted(vars(kind).items()))
        yield from (found for found in methods if isinstance(found, FunctionType))


def _with_mentioned(first: list[FunctionType]) -> Iterator[FunctionType]:
    """These functions, and those of their modules that they mention, each once, in an order that is always the same."""
    waiting, seen = list(first), set[int]()
    while waiting:
        function = waiting.pop(0)
        if id(function.__code__) in seen:
            continue
        seen.add(id(function.__code__))
        yield function
        waiting += [other for other in _mentioned(function) if other.__module__ == first[0].__module__]


def _mentioned(function: FunctionType) -> Iterator[FunctionType]:
    """By a global name, in a closure, or as what a decorator has wrapped."""
    if isinstance(wrapped := getattr(function, "__wrapped__", None), FunctionType):
        yield wrapped
    for cell in function.__closure__ or ():
        try:
            held = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        if isinstance(held, FunctionType):
            yield held
    for name in sorted(_names(function.__code__)):
        if isinstance(found := function.__globals__.get(name), FunctionType):
            yield found


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(inner) for inner in code.co_consts if isinstance(inner, CodeType)))


def _described(code: CodeType) -> tuple[Any, ...]:
    """What a code object does, without where it is written."""
    constants = code.co_consts[1:] if _has_docstring(code) else code.co_consts
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, code.co_argcount, code.co_kwonlyargcount, code.co_flags, *names, _plain(constants))


def _has_docstring(code: CodeType) -> bool:
    """Whether the first constant is a docstring, or the place of one."""
    if sys.version_info >= (3, 13):
        return bool(code.co_flags & HAS_DOCSTRING)
    return not code.co_name.startswith("<")


def _plain(constant: Any) -> Any:
    """A constant as text that is the same in every process: sets have no order, and other objects have addresses."""
    if isinstance(constant, CodeType):
        return _described(constant)
    if isinstance(constant, tuple):
        return tuple(map(_plain, constant))
    if isinstance(constant, frozenset):
        return tuple(sorted(repr(_plain(item)) for item in constant))
    return (type(constant).__name__, constant) if isinstance(constant, PLAIN) else type(constant).__name__


def _package(function: FunctionType) -> str:
    return (function.__module__ or "").partition(".")[0]
