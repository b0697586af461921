"""The report: one HTML file with the studies in it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from farthing.errors import FarthingError
from farthing.numerics.deadline import OutOfTime
from farthing.policies.named import stored_policy
from farthing.record.reader import read_study
from farthing.record.whole_file import write_whole
from farthing.report.content import overview
from farthing.report.figures.listed import FIGURES, Figure
from farthing.report.page.page import plotly_script, report_page
from farthing.report.reproduction import versions
from farthing.report.rows import best_and_newest
from farthing.session import Session
from farthing.text.escaping import on_one_line
from farthing.text.plain import cut_text

MOST_ROWS = 5_000  # of the table: more make a large file, and nobody reads them
OUTLOOK_SECONDS = 0.6
MODEL_SECONDS = 1.5  # for all figures that ask models
LONGEST_REASON = 500


@dataclass(frozen=True)
class Reported:
    """A study of a report, the name it is shown by, and the parts of it that its file cannot hold."""

    name: str
    session: Session
    left_out: Sequence[str] = ()


def save_report(studies: Sequence[Reported], path: str | PathLike[str]) -> None:
    """Write the report of some studies; whole or not at all."""
    write_whole(fspath(path), report_of(studies))


def report_of_files(paths: Sequence[str]) -> str:
    """The report of studies that are in files."""
    return report_of([_read(path) for path in paths])


def _read(path: str) -> Reported:
    file = read_study(path)
    policy = stored_policy(file.record.settings.policy)
    return Reported(Path(path).stem, Session(file.record, policy), file.left_out)


def report_of(
    studies: Sequence[Reported], figures: Sequence[Figure] = FIGURES, seconds: float = MODEL_SECONDS
) -> str:  # fmt: skip
    """The report as HTML; figures of one study that ask models may take so many seconds together."""
    plotly_script()  # whatever is missing is said before anything is computed
    shown = [_study(str(i), study, figures, seconds) for i, study in enumerate(studies)]
    today = f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC"
    data = {
        "studies": shown,
        "figures": [{"name": figure.name, "title": figure.title, "models": figure.models} for figure in figures],
        "made": f"Made on {today} with {versions()}.",
    }
    title = ", ".join(study["name"] for study in shown[:3])
    return report_page(data, f"{title} – Farthing")


def _study(number: str, study: Reported, figures: Sequence[Figure], seconds: float) -> dict[str, Any]:
    said = overview(study.session, study.name, left_out=study.left_out, seconds=OUTLOOK_SECONDS)
    return {
        "id": number, "name": said["name"], "overview": said,
        "figures": drawn(study.session, figures, seconds), "trials": _table(study.session),
    }  # fmt: skip


def _table(session: Session) -> dict[str, Any]:
    table = best_and_newest(session, MOST_ROWS)
    if (shown := len(table["rows"])) < table["total"]:
        table["note"] = (
            f"{shown:,} of {table['total']:,} trials: the {MOST_ROWS // 2:,} best and the newest of the others. "
            "farthing export writes all of them."
        )
    return table


def drawn(session: Session, figures: Sequence[Figure], seconds: float) -> dict[str, dict[str, Any]]:
    """Every figure by name, as a drawing or the reason why there is none; those that ask models share the time."""
    end, found = time.perf_counter() + seconds, dict[str, dict[str, Any]]()
    models = [figure for figure in figures if figure.models]
    for figure in [*models, *(figure for figure in figures if not figure.models)]:
        left = max(end - time.perf_counter(), 0.0) / max(len(models) - len(found), 1)
        found[figure.name] = drawn_or_reason(figure, session, left)
    return found


def drawn_or_reason(figure: Figure, session: Session, seconds: float) -> dict[str, Any]:
    """The drawing of a figure as JSON, or the reason why there is none."""
    try:
        return figure.make(session, seconds).as_json()
    except FarthingError as error:
        reason = str(error)
    except OutOfTime:
        reason = "there was not enough time to draw it"
    except Exception as error:  # whatever a file of unknown origin holds: the other figures are worth a report
        reason = f"it could not be drawn ({type(error).__name__}: {error})"
    reason = on_one_line(cut_text(reason, LONGEST_REASON))
    return {"name": figure.name, "title": figure.title, "reason": reason}
