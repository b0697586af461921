"""A configuration as text that is ready to copy: Python, JSON, and the arguments of a command.

Names and options may be a stranger's, and what is copied is run: each form holds values only, quoted as its language
does, and an object that a file can only describe is text. No mark in it can show another line than the one that runs.
"""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Mapping
from typing import Any

from farthing.errors import InvalidArgument
from farthing.report.drawing import listed
from farthing.space.command_template import RESERVED, CommandTemplate, as_text
from farthing.text.escaping import CONTROLS, in_json
from farthing.text.plain import LONGEST_WHOLE, plain

_UNSAFE = re.compile(f"[{CONTROLS}]")


def as_python(config: Mapping[str, Any], name: str = "config") -> str:
    """An assignment of a dict.

    >>> print(as_python({"lr": 0.1, "kind": "a'b", "act": max}))
    config = {
        'lr': 0.1,
        'kind': "a'b",
        'act': '<built-in function max>',  # stands for an object
    }
    """
    lines = [f"    {name!r}: {literal(value)},{_remark(value)}\n" for name, value in config.items()]
    return f"{name} = {{\n{''.join(lines)}}}"


def literal(value: Any) -> str:
    """A value as Python writes it, which is nothing but a value: of an object the text that describes it.

    >>> literal((16, "a")), literal(float("inf")), literal(max)
    ("(16, 'a')", "float('inf')", "'<built-in function max>'")
    """
    if type(value) is float and not math.isfinite(value):
        return f"float({str(value)!r})"
    return repr(value if _is_plain(value) else plain(value))


def _is_plain(value: Any) -> bool:
    if type(value) is int:
        return value.bit_length() <= LONGEST_WHOLE
    if type(value) in (list, tuple):
        return all(map(_is_plain, value))
    if type(value) is dict:
        return all(type(key) is str and _is_plain(item) for key, item in value.items())
    return value is None or type(value) in (str, bool) or (type(value) is float and math.isfinite(value))


def _remark(value: Any) -> str:
    described = not _is_plain(value) and type(value) is not str and isinstance(plain(value), str)
    return "  # stands for an object" if described else ""


def as_json(thing: Any) -> str:
    """Indented JSON, safe to show.

    >>> print(as_json({"kind": "a"}))
    {
      "kind": "a"
    }
    """
    return in_json(json.dumps(listed(plain(thing)), indent=2, ensure_ascii=False, allow_nan=False))


def as_arguments(config: Mapping[str, Any]) -> str:
    """The arguments `--name value` of a command in a shell.

    >>> print(as_arguments({"lr": 0.1, "tag": "it's", "shift": -1}))
    --lr 0.1 --tag 'it'"'"'s' --shift=-1
    """
    return " ".join(_option(name, as_text(plain(value))) for name, value in config.items())


def _option(name: str, text: str) -> str:
    return quoted(f"--{name}={text}") if text.startswith("-") else f"{quoted(f'--{name}')} {quoted(text)}"


def as_command(command: str, config: Mapping[str, Any], known: Mapping[str, Any]) -> str | None:
    """The command of a study with a configuration filled in; None if it is none. Placeholders of Farthing's own that
    are not `known` stay as they are.

    >>> as_command("./train.sh {x} --out={farthing.checkpoint_dir}", {"x": 3}, {"farthing.trial": 7})
    "./train.sh 3 '--out={farthing.checkpoint_dir}'"
    """
    try:
        template = CommandTemplate.of(command)
    except InvalidArgument:
        return None
    left = {name: f"{{{name}}}" for name in template.names if name.startswith(RESERVED)}
    values = {name: as_text(plain(value)) for name, value in {**left, **known, **config}.items()}
    return " ".join(map(quoted, template.filled(values)))


def quoted(text: str) -> str:
    r"""An argument for a shell; bash and zsh read what a screen cannot show by its number.

    >>> print(quoted("a b"), quoted("a\n\u202eb'"))
    'a b' $'a\x0a\u202eb\''
    """
    if not _UNSAFE.search(text):
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"$'{_UNSAFE.sub(_numbered, escaped)}'"


def _numbered(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x80 else f"\\u{code:04x}"
