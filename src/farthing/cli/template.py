"""A command with placeholders, and the arguments that a configuration makes of it.

The command is split once, as a shell would split it, and each argument is filled afterwards: what a value holds, be it
quotes, blanks or `; rm -rf`, stays inside its argument. No shell ever sees it.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from farthing.errors import InvalidArgument
from farthing.space import Choice, Ordered, Space

_PIECE = re.compile(r"(?P<text>(?:[^{}]|\{\{|\}\})+)|\{(?P<name>[^{}]+)\}")
OWN = "farthing."  # what names of placeholders that are no parameters begin with


@dataclass(frozen=True)
class Piece:
    """A stretch of an argument: literal text, or the name of what takes its place."""

    text: str
    is_name: bool = False


Argument = tuple[Piece, ...]


@dataclass(frozen=True)
class Template:
    """The arguments of a command, the program first.

    >>> template = Template.of("train --lr {lr} --tag='{tag}' --drop {drop}")
    >>> template.filled({"lr": "0.1", "tag": "it's; rm -rf /"})
    ['train', '--lr', '0.1', "--tag=it's; rm -rf /"]
    """

    arguments: tuple[Argument, ...]

    @classmethod
    def of(cls, command: str) -> Template:
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise InvalidArgument(f"command: cannot be split into arguments ({error}): {command}") from error
        if not arguments:
            raise InvalidArgument("command: is empty; expected a program and its arguments, such as 'train --lr {lr}'")
        return cls(tuple(map(_pieces, arguments)))

    @property
    def names(self) -> set[str]:
        """Of all placeholders."""
        return {piece.text for argument in self.arguments for piece in argument if piece.is_name}

    @property
    def program(self) -> str | None:
        """What is run, None where a placeholder says it."""
        first = self.arguments[0]
        return None if any(piece.is_name for piece in first) else "".join(piece.text for piece in first)

    def filled(self, values: Mapping[str, str]) -> list[str]:
        """The arguments. One with a placeholder that has no value, for its parameter is not active, is left out; if it
        is nothing but that placeholder, so is an option right before it, which would take the next argument."""
        filled: list[str] = []
        option = False  # whether the argument before is one that waits for its value
        for argument in self.arguments:
            names = {piece.text for piece in argument if piece.is_name}
            if names <= values.keys():
                filled.append("".join(values[piece.text] if piece.is_name else piece.text for piece in argument))
                option = not names and filled[-1].startswith("-") and "=" not in filled[-1]
            else:
                if option and len(argument) == 1:
                    filled.pop()
                option = False
        return filled


def _pieces(argument: str) -> Argument:
    pieces, at = list[Piece](), 0
    while at < len(argument):
        match = _PIECE.match(argument, at)
        if match is None:
            raise InvalidArgument(
                f"command: {argument!r} holds a brace that is no placeholder; write {{{{ or }}}} for the brace itself"
            )
        if match["name"] is not None:
            pieces.append(Piece(match["name"], True))
        else:
            pieces.append(Piece(match["text"].replace("{{", "{").replace("}}", "}")))
        at = match.end()
    return tuple(pieces) or (Piece(""),)


def as_text(value: Any) -> str:
    """A value as an argument: text as it is, all else as JSON.

    >>> as_text("it's"), as_text(0.1), as_text(True), as_text([1, 2])
    ("it's", '0.1', 'true', '[1, 2]')
    """
    return value if isinstance(value, str) else json.dumps(value)


def require_fillable(template: Template, space: Space, own: Collection[str], missing: Mapping[str, str]) -> list[str]:
    """Raise what is wrong with a command before it runs; the names of parameters that are in no placeholder.

    `own` are the placeholders there are beside parameters, `missing` those there could be, and what they need.
    """
    for name in sorted(template.names):
        if name in missing:
            raise InvalidArgument(f"command: {{{name}}} {missing[name]}")
        if name not in own and name not in space.names:
            raise InvalidArgument(f"command: nothing is called {{{name}}}; {_there_are(name, [*space.names, *own])}")
    for name in space.names:
        if name.startswith(OWN):
            raise InvalidArgument(
                f"parameter {name!r}: names that begin with {OWN!r} are placeholders of Farthing's own"
            )
    for name in sorted(template.names & {n for n, param in space.params.items() if param.when is not None}):
        if any(piece.text == name and piece.is_name for piece in template.arguments[0]):
            raise InvalidArgument(f"command: the program cannot be {{{name}}}, which is not always active")
    _require_texts(space)
    return [name for name in space.names if name not in template.names]


def _require_texts(space: Space) -> None:
    for name, param in space.params.items():
        for option in param.items if isinstance(param, Choice | Ordered) else ():
            try:
                text = as_text(option)
            except (TypeError, ValueError) as error:
                raise InvalidArgument(
                    f"parameter {name!r}: option {option!r} cannot be given to a command ({error}); "
                    "accepted: text, numbers, true, false, and lists and tables of them"
                ) from error
            if "\0" in text:
                raise InvalidArgument(f"parameter {name!r}: option {option!r} holds a NUL, which no argument can")


def _there_are(name: str, names: Iterable[str]) -> str:
    listed = list(names)
    close = get_close_matches(name, listed, 1)
    meant = f"did you mean {{{close[0]}}}? " if close else ""
    return f"{meant}There are {', '.join(f'{{{each}}}' for each in listed)}; {{{{ is a brace"
