"""A space file is the space it says, and what is wrong with one is said by file, line and key."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import farthing as ft
from farthing.cli.space_file import read_space
from farthing.cli.toml_lines import key_lines

WHOLE = """
# what may be tuned
[learning_rate]
type = "real"
low = 1e-5
high = 0.1
log = true

[depth]
type = "integer"
low = 2
high = 16
step = 2

["model.booster"]
type = "choice"
options = ["gbtree", "dart", 3, true, [1, 2], {a = 1}]

[batch]
type = "ordered"
values = [16, 32, 64]
log = true

[drop]
type = "real"
low = 0
high = 0.5
when = {"model.booster" = ["dart", 3], batch = 32}

[[forbid]]
depth = [14, 16]
"model.booster" = "dart"

[[forbid]]
"model.booster" = [1, 2]
"""


def test_a_file_is_the_space_it_says(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text(WHOLE)
    assert read_space(path) == ft.Space(
        {
            "learning_rate": ft.Real(1e-5, 0.1, log=True),
            "depth": ft.Integer(2, 16, step=2),
            "model.booster": ft.Choice(["gbtree", "dart", 3, True, [1, 2], {"a": 1}]),
            "batch": ft.Ordered([16, 32, 64], log=True),
            "drop": ft.Real(0, 0.5, when={"model.booster": {"dart", 3}, "batch": 32}),
        },
        forbid=[{"depth": {14, 16}, "model.booster": "dart"}, {"model.booster": [1, 2]}],
    )


def test_a_parameter_may_be_called_forbid(tmp_path):
    path = tmp_path / "space.toml"
    path.write_text('forbid = {type = "real", low = 0, high = 1}')
    assert read_space(path) == ft.Space({"forbid": ft.Real(0, 1)})


CASES = re.findall(
    r"^== ([^\n]*)\n(.*?)\n--> (\d+|-): ([^\n]*)$",
    Path(__file__).with_name("bad_space_files.txt").read_text(),
    flags=re.MULTILINE | re.DOTALL,
)


@pytest.mark.parametrize(("text", "line", "message"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_is_wrong_is_said_with_file_line_and_key(tmp_path, text, line, message):
    path = tmp_path / "space.toml"
    path.write_text(text)
    with pytest.raises(ft.errors.InvalidSpace) as raised:
        read_space(path)
    where = f"{path}: " if line == "-" else f"{path}:{line}: "
    assert str(raised.value).startswith(where + message)


def test_files_that_are_no_text_or_not_there(tmp_path):
    (tmp_path / "binary.toml").write_bytes(b"\xff\xfe\x00")
    for name, message in [
        ("binary.toml", "is not a text in UTF-8"),
        ("nowhere.toml", "cannot be read: No such file"),
        (".", "cannot be read: Is a directory"),
    ]:
        with pytest.raises(ft.errors.InvalidSpace, match=message):
            read_space(tmp_path / name)


# -- the locator ------------------------------------------------------------------------------------------------------

KEYS = st.one_of(st.text("ab_-1", min_size=1, max_size=3), st.text("a. \"#=[]{}\\'", min_size=1, max_size=4))
LEAVES = st.one_of(st.integers(), st.booleans(), st.text("a \"\\#=[]{}\n'", max_size=6))
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)


class Writer:
    """Writes TOML, and knows on which line each path begins."""

    def __init__(self) -> None:
        self.text, self.lines = "", {}

    def _here(self, path) -> None:
        self.lines[path] = self.text.count("\n") + 1

    def _quoted(self, text: str) -> str:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        return f'"{escaped}"'

    def table(self, name: str, content: dict) -> None:
        self._here((name,))
        self.text += f"[{self._quoted(name)}] # [x]\n"
        for key, value in content.items():
            self.pair((name,), key, value)
            self.text += " # a = 1\n\n"

    def pair(self, table, key: str, value) -> None:
        self._here((*table, key))
        self.text += f"{self._quoted(key)} = "
        self.value((*table, key), value)

    def value(self, path, value) -> None:
        if isinstance(value, list):
            self.text += "["
            for i, item in enumerate(value):
                self.text += "\n # ,\n" if i else ""
                self._here((*path, i))
                self.value((*path, i), item)
                self.text += ","
            self.text += "\n]"
        elif isinstance(value, dict):
            self.text += "{"
            for i, (key, item) in enumerate(value.items()):
                self.text += ", " if i else ""
                self.pair(path, key, item)
            self.text += "}"
        elif isinstance(value, str) and "\n" in value:
            escaped = value.replace("\\", "\\\\").replace('"', '\\"')
            self.text += f'"""\n{escaped}"""'
        else:
            self.text += str(value).lower() if isinstance(value, bool | int) else self._quoted(value)


@given(st.dictionaries(KEYS, st.dictionaries(KEYS, VALUES, max_size=3), max_size=3))
def test_every_key_and_element_is_found_on_its_line(document):
    writer = Writer()
    for name, content in document.items():
        writer.table(name, content)
    assert tomllib.loads(writer.text) == document
    assert key_lines(writer.text) == writer.lines


def test_bare_dotted_and_literal_keys_and_arrays_of_tables():
    text = (
        "a.b = 1\n'c.d'.e = '''\n x = 1'''\n[f . \"g\"]\nh = 1979-05-27 07:32:00\n[[i]]\nj = 1\n[[i]]\n[i.k]\nl = 2\n"
    )
    tomllib.loads(text)
    assert key_lines(text) == {
        ("a",): 1, ("a", "b"): 1, ("c.d",): 2, ("c.d", "e"): 2, ("f",): 4, ("f", "g"): 4, ("f", "g", "h"): 5,
        ("i",): 6, ("i", 0): 6, ("i", 0, "j"): 7, ("i", 1): 8, ("i", 1, "k"): 9, ("i", 1, "k", "l"): 10,
    }  # fmt: skip
