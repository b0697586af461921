"""A command with placeholders, and the arguments that a configuration makes of it.

The command is split once, as a shell would split it, and each argument is filled afterwards. Whatever a value holds,
quotes, blanks or `; rm -rf`, stays inside its argument: there is no shell.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from farthing.checks import refuse
from farthing.errors import InvalidArgument
from farthing.space.parameters import Choice, Ordered
from farthing.space.space import Space

_PIECE = re.compile(r"(?P<text>(?:[^{}]|\{\{|\}\})+)|\{(?P<name>[^{}]+)\}")
RESERVED = "farthing."  # prefix of the placeholders that are not parameters


@dataclass(frozen=True)
class Piece:
    """Part of an argument: literal text, or the name of a placeholder."""

    text: str
    is_name: bool = False


Argument = tuple[Piece, ...]


@dataclass(frozen=True)
class CommandTemplate:
    """The arguments of a command, the program first.

    >>> template = CommandTemplate.of("train --lr {lr} --tag='{tag}' --drop {drop}")
    >>> template.filled({"lr": "0.1", "tag": "it's; rm -rf /"})
    ['train', '--lr', '0.1', "--tag=it's; rm -rf /"]
    """

    arguments: tuple[Argument, ...]

    @classmethod
    def of(cls, command: str) -> CommandTemplate:
        try:
            arguments = shlex.split(command)
        except ValueError as error:
            raise InvalidArgument(f"command: cannot be split into arguments ({error}): {command}") from error
        if not arguments:
            refuse("command", "a program and its arguments, such as 'train --lr {lr}'", command)
        return cls(tuple(map(_pieces, arguments)))

    @property
    def names(self) -> set[str]:
        """The names of all placeholders."""
        return {piece.text for argument in self.arguments for piece in argument if piece.is_name}

    @property
    def program(self) -> str | None:
        """The program that is run, None if a placeholder decides it."""
        first = self.arguments[0]
        return None if any(piece.is_name for piece in first) else "".join(piece.text for piece in first)

    def filled(self, values: Mapping[str, str]) -> list[str]:
        """The arguments for these values.

        An argument with a placeholder that has no value, because its parameter is not active, is left out. If it is
        nothing but that placeholder, an option right before it is left out too: it would take the next argument.
        """
        filled: list[str] = []
        option = False  # whether the argument before is an option without its value
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
                f"command: {argument!r} has a brace that is not a placeholder; write {{{{ or }}}} for a literal brace"
            )
        if match["name"] is not None:
            pieces.append(Piece(match["name"], True))
        else:
            pieces.append(Piece(match["text"].replace("{{", "{").replace("}}", "}")))
        at = match.end()
    return tuple(pieces) or (Piece(""),)


def as_text(value: Any) -> str:
    """A value as an argument: text as it is, everything else as JSON.

    >>> as_text("it's"), as_text(0.1), as_text(True), as_text([1, 2])
    ("it's", '0.1', 'true', '[1, 2]')
    """
    return value if isinstance(value, str) else json.dumps(value)


def check_placeholders(
    template: CommandTemplate, space: Space, reserved: Collection[str], unavailable: Mapping[str, str]
) -> list[str]:
    """Refuse a command that cannot be filled, before it runs. Returns the parameters without a placeholder.

    `reserved` are the placeholders that are not parameters, `unavailable` those that this program does not have, and
    why.
    """
    for name in sorted(template.names):
        if name in unavailable:
            raise InvalidArgument(f"command: {{{name}}} {unavailable[name]}")
        if name not in reserved and name not in space.names:
            known = _known_placeholders(name, [*space.names, *reserved])
            raise InvalidArgument(f"command: unknown placeholder {{{name}}}; {known}")
    for name in space.names:
        if name.startswith(RESERVED):
            raise InvalidArgument(f"parameter {name!r}: names that begin with {RESERVED!r} are reserved for Farthing")
    for name in sorted(template.names & {n for n, param in space.params.items() if param.when is not None}):
        if any(piece.text == name and piece.is_name for piece in template.arguments[0]):
            raise InvalidArgument(f"command: {{{name}}} cannot be the program, because it is not always active")
    _check_options(space)
    return [name for name in space.names if name not in template.names]


def _check_options(space: Space) -> None:
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
                raise InvalidArgument(
                    f"parameter {name!r}: option {option!r} has a NUL character, which no argument can"
                )


def _known_placeholders(name: str, names: Iterable[str]) -> str:
    listed = list(names)
    close = get_close_matches(name, listed, 1)
    meant = f"did you mean {{{close[0]}}}? " if close else ""
    return f"{meant}expected one of {', '.join(f'{{{each}}}' for each in listed)}; write {{{{ for a literal brace"
