"""Attacks on Farthing: kills, damaged files, hostile objectives, altered events, and a question for each other way in.

    python -m benchmarks.attack                   about half an hour; writes docs/attacks.md and its data
    python -m benchmarks.attack --part damage     one part only (--part can be given several times)
    python -m benchmarks.attack --part questions --only paths    some questions, printed and not kept
    QUICK=1 python -m benchmarks.attack           a few of each, prints only
    python -m benchmarks.attack --page            the page again, from its data

Every part is kept when it is done, as long as neither its code nor Farthing changes, so that an interrupted run
continues with the next part; `--again` does it again. The page is written once all parts are there.

Farthing is whatever `import farthing` finds. To attack an older one, and keep its results for the column "before":

    PYTHONPATH=/path/to/older/src python -m benchmarks.attack --before

The overrun of hostile objectives is meant for an idle machine.
"""

from __future__ import annotations

import json
import os
import signal
import time
from argparse import Namespace
from collections.abc import Callable
from typing import Any

from benchmarks.attack import damage, hostile, kills, mutations, page, questions
from benchmarks.attack.processes import end_with_all
from benchmarks.attack.results import Result
from benchmarks.common.command import parser
from benchmarks.common.documents import kept_data, machine, publish, write_page
from benchmarks.common.environments import BENCHMARKS, DOCS, quick
from benchmarks.common.fingerprints import code_hash, short_hash
from benchmarks.common.kept_runs import CACHE, once

NAME, BEFORE = "attacks", "attacks-before"

ATTACKS: dict[str, Callable[..., list[Result]]] = {
    "kills": kills.attack,
    "damage": damage.attack,
    "mutations": mutations.attack,
    "questions": questions.attack,
    "hostile": hostile.attack,
    "optuna": hostile.attack_optuna,
}
MODULES = {  # whose code the results of a part depend on, below benchmarks/attack
    "kills": ("kills.py", "lives.py", "logged.py", "victims.py", "program.py"),
    "damage": ("damage.py", "damages.py", "specimens.py"),
    "mutations": ("mutations.py", "specimens.py"),
    "questions": ("questions.py", "items/*.py", "specimens.py"),
    "hostile": ("hostile.py", "objectives/*.py", "peers/farthing_peer.py"),
    "optuna": ("hostile.py", "objectives/*.py", "peers/optuna_peer.py"),
}


def key_of(part: str, options: dict[str, Any]) -> dict[str, Any]:
    """What the results of a part depend on."""
    own = sorted(path for pattern in MODULES[part] for path in (BENCHMARKS / "attack").glob(pattern))
    library = code_hash([]) if part == "optuna" else questions.library_code()
    return {"part": part, "own": code_hash(own), "farthing": library, **options}


def done(part: str, options: dict[str, Any], again: bool) -> dict[str, Any]:
    """The results of a part, kept or new, with the load of the machine when it began and the seconds it took."""
    key = key_of(part, options)
    if again:
        (CACHE / f"attack-{part}-{short_hash(key)}.json").unlink(missing_ok=True)
        if part == "questions":
            questions.forget()

    def attacked() -> dict[str, Any]:
        load, began = os.getloadavg()[0], time.monotonic()
        results = [result.as_json() for result in ATTACKS[part](**options)]
        return {"load": load, "seconds": time.monotonic() - began, "results": results}

    found: dict[str, Any] = once(f"attack-{part}", key, attacked)
    print(f"{part}: {len(found['results'])} results in {found['seconds']:.0f} s", flush=True)
    return found


def kept(part: str, options: dict[str, Any]) -> bool:
    return (CACHE / f"attack-{part}-{short_hash(key_of(part, options))}.json").exists()


def options_of(part: str, asked: Namespace) -> dict[str, Any]:
    seconds = {"budget": asked.seconds} if part in ("hostile", "optuna") and asked.seconds else {}
    return {"quick": quick(), **seconds}


def command_line() -> Namespace:
    options = parser(__doc__, has_page=True)
    options.add_argument("--part", action="append", choices=tuple(ATTACKS), help="only this part")
    options.add_argument("--only", default="", help="only the questions with this text, printed and not kept")
    options.add_argument("--before", action="store_true", help="keep the results as those of an older Farthing")
    options.add_argument("--again", action="store_true", help="do parts again that are kept")
    options.add_argument("--seconds", type=float, help="the budget of hostile objectives, if not five seconds")
    return options.parse_args()


def main() -> None:
    asked = command_line()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, end_with_all)
    if asked.only:
        questions.only(asked.only)
        return
    if asked.page:
        data = kept_data(NAME)
        write_page(NAME, page.document(data, kept_data(BEFORE)), data)
        return
    found = {part: done(part, options_of(part, asked), asked.again) for part in asked.part or ATTACKS}
    missing = [part for part in ATTACKS if part not in found and not kept(part, options_of(part, asked))]
    if missing:
        print(f"not done yet: {', '.join(missing)}; the page is written once all parts are there", flush=True)
        return
    parts = {part: found.get(part) or done(part, options_of(part, asked), False) for part in ATTACKS}
    data = {"machine": machine(), "parts": parts}
    if asked.before:
        if not quick():
            (DOCS / "data" / f"{BEFORE}.json").write_text(json.dumps(data, separators=(",", ":")) + "\n")
        print(page.document(data, data))
    else:
        publish(NAME, page.document(data, kept_data(BEFORE)), data, is_whole=not quick())


if __name__ == "__main__":
    main()
