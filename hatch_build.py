"""Used when Farthing is built: the description of the package is README.md without its pictures, which are files of the
repository and have no address on a package index."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

try:
    from hatchling.metadata.plugin.interface import MetadataHookInterface
except ImportError:  # the tests read this file where nothing is built
    MetadataHookInterface = object

PICTURE = re.compile(r"^!\[[^\]]*\]\((?!https://)[^)]*\)\n\n?", re.MULTILINE)


def described(readme: str) -> str:
    """What a package index shows of README.md."""
    return PICTURE.sub("", readme)


class Description(MetadataHookInterface):  # type: ignore[misc]  # it has no types
    """Hatchling calls it for the fields of pyproject.toml that are dynamic."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = described((Path(self.root) / "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
