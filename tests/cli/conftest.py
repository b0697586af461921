"""A folder in which `farthing` is called; see called.py."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from called import SPACE, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    folder = Folder(tmp_path)
    folder.write("space.toml", SPACE)
    yield folder
    folder.end()
