"""From the options of `farthing run`, of the command line or a config file, to what is run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from farthing.cli.arguments import FoundSpace, find_space, is_address, parse_budget, with_unit
from farthing.cli.config_file import Place, place_of, without_replaced
from farthing.cli.run_note import RAY, RunNote
from farthing.cli.running import Display, Request
from farthing.cli.script import split_address
from farthing.cli.start import cheap_values, names_file, start_configs

NOTE_OPTIONS = (
    "objective", "command", "iterative", "pause", "workers", "trial_seconds", "trial_memory", "meter", "max_failures",
    "keep_checkpoints", "isolate", *RAY,
)  # fmt: skip
STUDY_OPTIONS = ("policy", "seed", "maximize", "stop_at", "stop_when_not_worth", "task")


def note_options(given: Mapping[str, Any]) -> dict[str, Any]:
    """The options that a study's file remembers, as far as they are given."""
    found = {name: given[name] for name in NOTE_OPTIONS if given.get(name) is not None}
    if "trial_seconds" in found:
        found["trial_seconds"] = with_unit(found["trial_seconds"])
    return found


def request_of(given: Mapping[str, Any], filed: set[str]) -> Request:
    """What a call of `farthing run` asks for, as it is seen from the folder in which it is run.

    given  the options by name
    filed  the names of those that come from the config file
    """
    given = without_replaced(given, filed)
    place = place_of(given["config"], given, filed)
    steps = {} if given["max_steps"] is None else {"steps": given["max_steps"]}
    note = RunNote(**note_options(given), **steps)
    budget = parse_budget(given["budget"])
    found = _space_of(given["space"], note, place, "space" in filed)
    start = [
        place.seen(item, from_file="start" in filed) if isinstance(item, str) and names_file(item) else item
        for item in given["start"]
    ]
    earlier = [place.seen(path, from_file="warm_start" in filed, in_run=True) for path in given["warm_start"]]
    named = given["storage"] and place.seen(given["storage"], from_file="storage" in filed)
    return Request(
        note, found, budget,
        storage=named if named is None or place.run == place.here else os.path.abspath(named),
        named=named,
        place=place.run,
        start=tuple(start_configs(start, found.space)),
        display=Display(given["quiet"], given["show_output"]),
        options={
            **{name: given[name] for name in STUDY_OPTIONS},
            "cheap": cheap_values(given["cheap"], found.space), "warm_start": earlier,
        },
    )  # fmt: skip


def _space_of(given: Any, note: RunNote, place: Place, filed: bool) -> FoundSpace:
    """The space: files are read from here, scripts are named from where they are run."""
    if isinstance(given, str):
        path = place.seen(given, from_file=filed)
        if not is_address(path):
            given = path
        elif split_address(given)[0].endswith(".py"):
            given = place.seen(given, from_file=filed, in_run=True)
    return find_space(given, note.objective, place.run)
