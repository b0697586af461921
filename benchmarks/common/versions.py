"""Versions of libraries, also of one that lies on PYTHONPATH without being installed."""

from __future__ import annotations

from importlib import import_module, metadata


def version(name: str) -> str:
    """
    >>> version("farthing").count(".")
    2
    """
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return str(import_module(name).__version__)
