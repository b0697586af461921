"""Answers to requests, as values: made off the loop, sent by the app."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any

JSON = "application/json"
SMALL = 10_000  # bytes below which it does not pay to compress
FAST = 1  # the level of compression: a network is slower than that, a loopback is not
LONGEST_REASON = 600  # characters of an error


@dataclass(frozen=True)
class Answer:
    """What is sent back."""

    body: bytes
    status: int = 200
    kind: str = JSON
    headers: Mapping[str, str] = field(default_factory=dict)
    zipped: bytes | None = None  # the same body, if that is much smaller

    @property
    def etag(self) -> str:
        """The same for the same body."""
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    def compressed(self) -> Answer:
        """With a compressed body beside the plain one, if it is large."""
        if len(self.body) < SMALL:
            return self
        return replace(self, zipped=gzip.compress(self.body, FAST, mtime=0))


def json_answer(content: Any, status: int = 200, **headers: str) -> Answer:
    """An answer in JSON, which every browser reads: no NaN in it.

    >>> json_answer({"said": "yes"}).body
    b'{"said":"yes"}'
    """
    text = json.dumps(content, allow_nan=False, ensure_ascii=True, separators=(",", ":"))
    return Answer(text.encode(), status, headers={name.replace("_", "-"): value for name, value in headers.items()})


def error_answer(status: int, why: str, **headers: str) -> Answer:
    """An answer that says what is wrong."""
    return json_answer({"error": why[:LONGEST_REASON]}, status, **headers)


def not_yet(reading: bool, trouble: str) -> Answer:
    """What is asked for is not there yet: the file is being read, or it cannot be read now."""
    return json_answer({"reading": reading, "share": None, "trouble": trouble}, 202)
