"""No answer of an objective aborts a study."""

from __future__ import annotations

from pathlib import Path

from benchmarks.attack.items.registry import Answer, error_of, item, program, said

CODE = """
import asyncio
class NoException(BaseException):
    pass
def objective(config):
    if ft.current_run().trial == 1:
        ANSWER
    return config["x"]
study = tune(
    objective, space, "4 evaluations", policy="random", seed=0, isolate=sys.argv[1] == "worker", storage="study.db",
    progress=False,
)
trial = study.trials[1]
say(trials=len(study.trials), status=trial.status.value, error=(trial.error or "")[-80:])
"""
ANSWERS = {
    "a whole number of 5,001 digits": "return 10 ** 5000",
    "a note with a number of 5,001 digits": 'return {"value": 1.0, "note": 10 ** 5000}',
    "asyncio.CancelledError": "raise asyncio.CancelledError('cancelled by me')",
    "a BaseException": "raise NoException('raised by me')",
    "GeneratorExit": "raise GeneratorExit",
    "a note that holds itself": "note = []; note.append(note); return {'value': 1.0, 'note': note}",
}
GIGABYTE = "return {'value': 1.0, 'note': 'x' * 1_100_000_000}"


def survived(answer: str, where: str, folder: Path, limit: float = 60.0) -> tuple[bool, str]:
    found = said(ended := program(folder, CODE.replace("ANSWER", answer), where, limit=limit))
    text = f"{found.get('status')}: {found.get('error')}" if found else error_of(ended)
    return found.get("trials") == 4, text


def _add(name: str, answer: str) -> None:
    @item("answers", f"{name} does not abort a study, in process or in a worker")
    def attack(folder: Path) -> Answer:
        found = {}
        for where in ("process", "worker"):
            (folder / where).mkdir()
            found[where] = survived(answer, where, folder / where)
        bad = [f"{where}: {text}" for where, (holds, text) in found.items() if not holds]
        return Answer(not bad, "; ".join(bad))


for _name, _answer in ANSWERS.items():
    _add(_name, _answer)


@item("answers", "what a worker raised is kept as text")
def text_is_kept(folder: Path) -> Answer:
    _, text = survived(ANSWERS["a BaseException"], "worker", folder)
    return Answer("raised by me" in text, text)


@item("answers", "a note of more than a gigabyte does not abort a study", alone=True)
def gigabyte(folder: Path) -> Answer:
    holds, text = survived(GIGABYTE, "process", folder, limit=120.0)
    return Answer(holds, text[-100:])
