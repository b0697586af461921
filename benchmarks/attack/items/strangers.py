"""A stranger's file runs nothing, and what strangers wrote cannot speak to a terminal or a spreadsheet."""

from __future__ import annotations

import csv
import io
import shutil
import stat
from pathlib import Path

from benchmarks.attack.items.registry import Answer, error_of, item, program, said, script
from benchmarks.attack.processes import Ended, farthing, run

TRAIN = """
def objective(config):
    open("ran-in-python", "a").write("x")
    return config["x"]
"""
SPACE = 'x = {type = "real", low = 0.0, high = 1.0}\n'


def homes(folder: Path, owner: str) -> dict[str, str]:
    """A user with a config folder of their own."""
    home = folder / f"home-{owner}"
    home.mkdir(exist_ok=True)
    return {"HOME": str(home), "XDG_CONFIG_HOME": str(home / ".config")}


def made(folder: Path, *what: object) -> Path:
    """A study file that somebody's `farthing run` left behind, in their folder."""
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "space.toml").write_text(SPACE)
    script(theirs, TRAIN, "train.py")
    options = ["--space", "space.toml", "--budget", "2 evaluations", "--storage", "study.db", "--quiet"]
    ended = run(farthing("run", *what, *options), cwd=theirs, more=homes(folder, "them"))
    if ended.status != 0:
        raise RuntimeError(f"the study could not be made: {ended.errors[-300:]}")
    return theirs


def resumed(folder: Path, at: Path, owner: str, *options: object) -> Ended:
    return run(
        farthing("resume", at / "study.db", "--budget", "4 evaluations", "--quiet", *options), cwd=at,
        more=homes(folder, owner),
    )  # fmt: skip


def ran(folder: Path) -> int:
    """How often the command or the script has run there."""
    return sum(len(path.read_text()) for path in folder.rglob("ran-*"))


def is_asked_first(folder: Path, *what: object) -> Answer:
    """Whether a stranger's file, resumed without a terminal, runs nothing and shows what it would run."""
    theirs = made(folder, *what)
    before = ran(theirs)
    ended = resumed(folder, theirs, "me")
    more = ran(theirs) - before
    shown = any(word in ended.errors + ended.output for word in ("ran-command", "train.py"))
    seen = f"ran {more} more times, status {ended.status}, {'shown' if shown else 'not shown'}"
    return Answer(more == 0 and ended.status not in (0, None) and shown, seen)


COMMAND = ("--command", "sh -c 'printf x >> ran-command; echo {x}'")


@item("strangers", "`farthing resume` runs no command of a stranger's file without being told to")
def command_of_a_stranger(folder: Path) -> Answer:
    return is_asked_first(folder, *COMMAND)


@item("strangers", "`farthing resume` imports no script of a stranger's file without being told to")
def script_of_a_stranger(folder: Path) -> Answer:
    return is_asked_first(folder, "train.py:objective")


@item("strangers", "a script outside the current folder is not imported, with `--yes` neither")
def script_outside(folder: Path) -> Answer:
    outside = folder / "outside"
    outside.mkdir()
    script(outside, TRAIN, "train.py")
    theirs = made(folder, f"{outside}/train.py:objective")
    before, found = ran(theirs), []
    for options in ([], ["--yes"]):
        found.append(resumed(folder, theirs, "me", *options).status)
    more = ran(theirs) - before
    return Answer(more == 0 and 0 not in found, f"ran {more} more times, status {found[0]} and {found[1]}")


@item("strangers", "`farthing resume --yes` runs it")
def told_to(folder: Path) -> Answer:
    theirs = made(folder, *COMMAND)
    ended = resumed(folder, theirs, "me", "--yes")
    return Answer(ended.status == 0 and ran(theirs) == 4, f"status {ended.status}, {ran(theirs)} evaluations")


@item("strangers", "one's own file continues without a question")
def own_file(folder: Path) -> Answer:
    mine = made(folder, *COMMAND)
    ended = resumed(folder, mine, "them")
    return Answer(ended.status == 0 and ran(mine) == 4, f"status {ended.status}, {ran(mine)} evaluations")


@item("strangers", "a mark over another command is not believed")
def another_command(folder: Path) -> Answer:
    """My own file, whose command somebody has exchanged without knowing the key."""
    mine = made(folder, *COMMAND)
    code = """
    import sqlite3
    from contextlib import closing
    from farthing.record.storage import SQLiteLog
    with closing(sqlite3.connect("study.db")) as connection:
        events = connection.execute("SELECT kind, body FROM events ORDER BY number").fetchall()
    with closing(SQLiteLog("changed.db")) as log:
        log.append(*((kind, body.replace("ran-command", "ran-another")) for kind, body in events))
    os.replace("changed.db", "study.db")
    """
    program(mine, code)
    ended = resumed(folder, mine, "them")
    other = (mine / "ran-another").exists()
    return Answer(
        not other and ended.status not in (0, None), f"status {ended.status}; it {'ran' if other else 'did not run'}"
    )


REWRITTEN = """
import sqlite3
from contextlib import closing
from farthing.errors import FarthingError
from farthing.record.reader import read_study
from farthing.record.storage import SQLiteLog
with Study(space, "100 evaluations", policy="random", seed=0, storage="study.db") as study:
    for _ in range(4):
        study.tell(study.ask(), value=1.0)
def opened(path):
    said = []
    for opener in (read_study, Study.resume):
        try:
            study = opener(path)
            said.append(f"opened, {study.ledger.left('evaluations'):,.0f} of 100 left")
        except FarthingError as error:
            said.append("refused")
        except Exception as error:
            said.append(f"internal {type(error).__name__}")
    return said
"""


@item("strangers", "charges cannot give back what was spent (remaining 1,000,000,096 of 100)")
def refund(folder: Path) -> Answer:
    code = """
with closing(sqlite3.connect("study.db")) as connection:
    events = connection.execute("SELECT kind, body FROM events ORDER BY number").fetchall()
events.append(("charged", json.dumps({"charges": {"evaluation": {"evaluations": -1e9}}})))
with closing(SQLiteLog("other.db")) as log:
    log.append(*events)
say(said=opened("other.db"))
"""
    found = said(ended := program(folder, REWRITTEN + code)).get("said", [error_of(ended)])
    return Answer(set(found) == {"refused"}, "; ".join(sorted(set(found))))


@item("strangers", "a schema that is not UTF-8 is refused, by an error of Farthing's own")
def broken_schema(folder: Path) -> Answer:
    code = """
with closing(sqlite3.connect("study.db", isolation_level=None)) as connection:
    connection.execute("PRAGMA writable_schema=ON")
    row = "('view', CAST(x'FFFE' AS TEXT), 'more', 0, 'CREATE VIEW more AS SELECT 1')"
    connection.execute(f"INSERT INTO sqlite_master VALUES {row}")
say(said=opened("study.db"))
"""
    found = said(ended := program(folder, REWRITTEN + code)).get("said", [error_of(ended)])
    return Answer(set(found) == {"refused"}, "; ".join(sorted(set(found))))


# -- printing ----------------------------------------------------------------------------------------------------------

HOSTILE_TEXT = """
evil = "\\x1b]0;owned\\x07\\x1b[2J\\x9b31mred\\u202e"
space = ft.Space(**{"x": ft.Real(0, 1), "kind" + evil: ft.Choice(["=cmd|' /C calc'!A0", "@SUM(1)", evil])})
with Study(space, "100 evaluations", policy="random", seed=0, storage="study.db") as study:
    study.note(cli={"command": "train " + evil, "folder": "."})
    for number in range(12):
        proposal = study.ask()
        if number % 3:
            study.tell(proposal, value=number, note=evil + "=1+1", formula="=HYPERLINK(\\"x\\")")
        else:
            study.tell(proposal, failed="-2+3" + evil)
    study.ask()
"""
CONTROL = {chr(code) for code in (*range(0x20), *range(0x7F, 0xA0)) if chr(code) not in "\n\t\r"}


@item("printing", "control and escape codes of a file never reach the terminal")
def escape_codes(folder: Path) -> Answer:
    program(folder, HOSTILE_TEXT)
    found = {}
    for command in (["status"], ["best"], ["export"], ["export", "--csv", "-"], ["pareto"], ["resume"]):
        ended = run(farthing(command[0], "study.db", *command[1:]), cwd=folder)
        found[" ".join(command)] = bool(CONTROL & set(ended.output + ended.errors))
    bad = [command for command, is_bad in found.items() if is_bad]
    return Answer(not bad, f"codes from: {', '.join(bad)}" if bad else "")


@item("printing", "no cell of an exported table begins as a formula does")
def formulas(folder: Path) -> Answer:
    program(folder, HOSTILE_TEXT)
    ended = run(farthing("export", "study.db", "--csv", "trials.csv"), cwd=folder)
    text = (folder / "trials.csv").read_text() if (folder / "trials.csv").exists() else ended.output
    cells = [cell for row in csv.reader(io.StringIO(text)) for cell in row]
    formulas = [cell for cell in cells if cell[:1] in tuple("=+@\t\r") or (cell[:1] == "-" and not _is_number(cell))]
    return Answer(bool(cells) and not formulas, f"{len(formulas)} formulas in {len(cells)} cells")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


@item("printing", "a lone surrogate does not leave an empty export")
def surrogates(folder: Path) -> Answer:
    code = """
    with Study(space, "9 evaluations", policy="random", seed=0, storage="study.db") as study:
        study.tell(study.ask(), value=1.0, note="\\ud800 lone")
        study.tell(study.ask(), failed="\\udcff")
    """
    ended = program(folder, code)
    rows = {}
    for kind in ("csv", "json"):
        run(farthing("export", "study.db", f"--{kind}", f"trials.{kind}"), cwd=folder)
        file = folder / f"trials.{kind}"
        text = file.read_text(errors="replace") if file.exists() else ""
        rows[kind] = len(text.splitlines()) if kind == "csv" else text.count('"status"')
    holds = rows["csv"] >= 3 and rows["json"] == 2
    return Answer(holds, f"{error_of(ended)} rows {rows}".strip())


@item("printing", "a study file can be read by its owner only (0600)")
def mode_of_files(folder: Path) -> Answer:
    code = """
    os.umask(0o022)
    with Study(space, "9 evaluations", policy="random", seed=0, storage="study.db") as study:
        study.tell(study.ask(), value=1.0)
        for name in sorted(os.listdir(".")):
            if name.startswith("study.db"):
                os.chmod(".", 0o755), print(name, oct(os.stat(name).st_mode & 0o777))
    """
    ended = program(folder, code)
    mode = stat.S_IMODE((folder / "study.db").stat().st_mode)
    others = [line for line in ended.output.splitlines() if not line.endswith("0o600")]
    shutil.rmtree(folder / "study.db.checkpoints", ignore_errors=True)
    return Answer(mode == 0o600 and not others, f"mode {mode:o}")
