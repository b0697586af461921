"""What an open page sees of studies while they run, appear, break or are replaced, with a real server."""

from __future__ import annotations

import gzip
import json
import threading
import time
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from called import until
from farthing.errors import NoTrial
from farthing.report.drawing import Drawing
from farthing.report.figures.listed import FIGURES, Figure
from farthing.report.live import app, watching
from farthing.report.live.answers import Answer
from farthing.report.live.kept import KeptAnswers
from farthing.report.live.server import LivePage
from farthing.report.live.studies import names_of
from farthing.text.plain import logger
from live_pages import Reply, ask, change, listening, open_study, shown, study_file, tell

BEST = "/api/studies/0/figures/best_value"


def drawn(reply: Reply) -> list[float]:
    """The values of the staircase, each once."""
    assert reply.status == 200, reply.body
    return [value for value, _ in groupby(reply.json["data"][0]["y"])]


def heard(messages: Iterator[Any], **wanted: Any) -> Any:
    """The first message that says this."""
    return next(message for message in messages if wanted.items() <= message.items())


def condition(page, study: int = 0):
    return page.studies.by_id[str(study)].file.condition


class TestOneStudy:
    def test_the_page_has_all_that_the_study_has(self, tmp_path):
        study = study_file(tmp_path / "s.db")
        with shown(study) as page:
            (listed,) = ask(page, "/api/studies").json
            assert {"id": "0", "name": "s.db", "live": False, "reading": False, "trouble": ""}.items() <= listed.items()
            assert drawn(ask(page, BEST)) == [0.5, 0.25]
            overview = ask(page, "/api/studies/0/overview").json
            assert overview["counts"] == {"complete": 3}
            assert overview["events"] == listed["events"] == ask(page, BEST).json["events"]
            rows = ask(page, "/api/studies/0/trials?sort=value&descending=1&offset=1&count=2").json
            assert [row["cells"][2] for row in rows["rows"]] == [0.5, 0.25]
            assert rows["total"] == 3
            assert [figure["name"] for figure in ask(page, "/api/figures").json] == [one.name for one in FIGURES]

    def test_the_words_come_at_once_and_what_more_budget_would_bring_a_moment_later(self, tmp_path):
        with shown(study_file(tmp_path / "s.db", tuple(1 / n for n in range(1, 12)))) as page:
            first = ask(page, "/api/studies/0/overview").json
            assert first["more"]
            until(lambda: not ask(page, "/api/studies/0/overview").json["more"])
            whole = ask(page, "/api/studies/0/overview").json
            assert whole["headline"][:-1] == first["headline"]
            assert "expected to bring" in whole["headline"][-1]

    def test_every_figure_is_drawn_or_says_why_not(self, tmp_path):
        with shown(study_file(tmp_path / "full.db"), study_file(tmp_path / "empty.db", ())) as page:
            for study in (0, 1):
                for figure in FIGURES:
                    found = ask(page, f"/api/studies/{study}/figures/{figure.name}").json
                    assert found["title"]
                    assert ("data" in found) != ("reason" in found)
            assert "no trial has a value yet" in ask(page, "/api/studies/1/figures/best_value").json["reason"]

    def test_a_new_trial_is_told_and_drawn_while_the_study_runs(self, tmp_path):
        with open_study(tmp_path / "s.db") as study:
            tell(study, 0.5)
            with shown(tmp_path / "s.db") as page, listening(page) as messages:
                before = next(messages)
                assert before["live"]
                assert drawn(ask(page, BEST)) == [0.5]
                tell(study, 0.125)
                after = next(messages)
                assert after["events"] > before["events"]
                assert after["id"] == before["id"] == "0"
                until(lambda: drawn(ask(page, BEST)) == [0.5, 0.125])  # a figure may rest for half a second
                study.close()
                assert heard(messages, live=False)["events"] == after["events"]

    def test_only_what_is_new_is_read(self, tmp_path, monkeypatch):
        with open_study(tmp_path / "s.db") as study:
            tell(study, 0.5)
            with shown(tmp_path / "s.db") as page:
                file = page.studies.by_id["0"].file._file
                monkeypatch.setattr(watching, "read_study", None)
                before = condition(page).look
                tell(study, 0.25)
                until(lambda: condition(page).look.events > before.events)
                assert page.studies.by_id["0"].file._file is file
                assert before.session.history.count() == 1  # who still computes from it sees what it was

    def test_two_pages_hear_the_same_and_one_that_leaves_is_forgotten(self, tmp_path):
        with open_study(tmp_path / "s.db") as study, shown(tmp_path / "s.db") as page:
            with listening(page) as one:
                with listening(page) as other:
                    assert next(one) == next(other)
                    tell(study, 0.5)
                    assert next(one) == next(other)
                tell(study, 0.25)
                assert next(one)["events"] > 0
            streams = page.studies.streams
            for value in (0.2, 0.1):
                tell(study, value)
            until(lambda: not streams._listeners)

    def test_it_is_said_that_the_run_was_told(self, tmp_path):
        with open_study(tmp_path / "s.db") as study:
            tell(study, 0.5)
            with shown(tmp_path / "s.db", control=True) as page:
                said = change(page, {"action": "pause"}).json["said"]
                assert "runs this study; it was told" in said


class TestSeveralStudies:
    def test_each_is_shown_under_its_own_name_and_number(self, tmp_path):
        (tmp_path / "a").mkdir()
        files = [
            study_file(tmp_path / name, (value,)) for name, value in (("s.db", 1.0), ("a/s.db", 2.0), ("t.db", 3.0))
        ]
        with shown(*files, files[0]) as page:
            names = [(one["id"], one["name"]) for one in ask(page, "/api/studies").json]
            assert names == [("0", f"{tmp_path.name}/s.db"), ("1", "a/s.db"), ("2", "t.db")]
            figures = [ask(page, f"/api/studies/{i}/figures/best_value") for i in range(3)]
            assert [drawn(figure) for figure in figures] == [[1.0], [2.0], [3.0]]
            with listening(page) as messages:
                assert {next(messages)["id"] for _ in range(3)} == {"0", "1", "2"}

    def test_a_damaged_one_says_so_and_disturbs_no_other(self, tmp_path):
        damaged, whole = study_file(tmp_path / "damaged.db"), study_file(tmp_path / "whole.db")
        content = damaged.read_bytes()
        damaged.write_bytes(content[: len(content) // 2 + 100])
        with shown(damaged, whole) as page:
            reply = ask(page, "/api/studies/0/overview")
            assert (reply.status, reply.json["reading"]) == (202, False)
            assert reply.json["trouble"].startswith("damaged.db: ")
            assert str(tmp_path) not in reply.json["trouble"]
            assert drawn(ask(page, "/api/studies/1/figures/best_value")) == [0.5, 0.25]
            with listening(page) as messages:
                assert heard(messages, id="0")["trouble"] == reply.json["trouble"]
            damaged.write_bytes(content)  # a copy of it is put back
            until(lambda: not condition(page).trouble)
            assert drawn(ask(page, BEST)) == [0.5, 0.25]

    def test_names_are_cut_and_hold_no_control_codes(self):
        (name,) = names_of(["x" * 200 + "\x1b[2J.db"])
        assert len(name) <= 81
        assert "\x1b" not in name


class TestFilesThatChange:
    def test_a_file_that_is_made_later_is_shown_then(self, tmp_path):
        with shown(tmp_path / "s.db") as page:
            assert "no such study file" in ask(page, "/api/studies").json[0]["trouble"]
            assert ask(page, BEST).status == 202
            with listening(page) as messages:
                next(messages)
                study_file(tmp_path / "s.db")
                heard(messages, trouble="", reading=False)
            until(lambda: ask(page, BEST).status == 200 and drawn(ask(page, BEST)) == [0.5, 0.25])

    def test_a_file_that_is_replaced_is_opened_anew(self, tmp_path):
        study = study_file(tmp_path / "s.db")
        other = study_file(tmp_path / "other.db", (3.0, 2.0, 1.0))  # as many events: only the values differ
        with shown(study) as page:
            assert drawn(ask(page, BEST)) == [0.5, 0.25]
            other.rename(study)
            until(lambda: drawn(ask(page, BEST)) == [3.0, 2.0, 1.0])
            assert condition(page).trouble == ""

    def test_a_file_that_is_deleted_stays_on_the_page_which_says_so(self, tmp_path):
        study = study_file(tmp_path / "s.db")
        with shown(study) as page:
            study.unlink()
            until(lambda: "no such" in condition(page).trouble)
            assert drawn(ask(page, BEST)) == [0.5, 0.25]
            assert "no such" in ask(page, "/api/studies/0/overview").json["trouble"]
            assert change_refused(page)

    def test_a_file_that_breaks_while_it_is_shown_stays_on_the_page_which_says_so(self, tmp_path):
        study = study_file(tmp_path / "s.db")
        with shown(study) as page:
            study.write_bytes(b"overwritten" * 1000)
            until(lambda: condition(page).trouble)
            assert drawn(ask(page, BEST)) == [0.5, 0.25]
            assert str(tmp_path) not in condition(page).trouble

    def test_a_broken_file_is_not_read_over_and_over(self, tmp_path, monkeypatch):
        tries = []
        read = watching.read_study
        monkeypatch.setattr(watching, "read_study", lambda path: [tries.append(path), read(path)][1])
        (tmp_path / "s.db").write_bytes(b"SQLite format 3\0" + b"x" * 4000)
        file = watching.WatchedFile(str(tmp_path / "s.db"), "s.db", lambda: None)
        monkeypatch.setattr(watching, "_is_settled", lambda state: True)
        for _ in range(5):
            file.look()
        assert len(tries) == 1
        assert file.condition.trouble


def change_refused(page) -> bool:
    """A page without a token: nothing is changed, and nothing breaks."""
    return change(page, {"action": "stop"}).status == 403


class TestWhileItIsRead:
    def test_a_page_hears_that_the_study_is_being_read_and_sees_a_first_drawing(self, tmp_path, monkeypatch):
        study_file(tmp_path / "s.db")
        go_on, read = threading.Event(), watching.read_study
        monkeypatch.setattr(watching, "read_study", lambda path: [go_on.wait(60), read(path)][1])
        first = Drawing("best_value", "Best value over cost", "", [{"type": "scatter", "y": [9.0]}])
        page = LivePage([str(tmp_path / "s.db")], port=0, glance=lambda path: first)
        thread = threading.Thread(target=page.run)
        thread.start()
        try:
            until(lambda: ask(page, BEST).status == 200)
            assert (drawn(ask(page, BEST)), ask(page, BEST).json["reading"]) == ([9.0], True)
            waiting = ask(page, "/api/studies/0/overview")
            assert (waiting.status, waiting.json["reading"]) == (202, True)
            assert ask(page, "/api/studies").json[0]["reading"]
            go_on.set()
            until(lambda: drawn(ask(page, BEST)) == [0.5, 0.25])
            assert "reading" not in ask(page, BEST).json
        finally:
            go_on.set()
            page.end()
            thread.join(60)


class TestFigures:
    def with_figures(self, monkeypatch, *figures: Figure) -> None:
        monkeypatch.setattr(app, "FIGURE", {figure.name: figure for figure in figures})

    def test_a_slow_model_keeps_no_other_figure_and_no_table_waiting(self, tmp_path, monkeypatch):
        go_on, begun = threading.Event(), threading.Event()

        def think(session, seconds):
            begun.set()
            assert go_on.wait(60)
            return Drawing("slow", "Slow", "", [])

        self.with_figures(monkeypatch, Figure("slow", "Slow", think, models=True), *FIGURES)
        with shown(study_file(tmp_path / "s.db")) as page:
            replies: list[Reply] = []
            asked = [
                threading.Thread(target=lambda: replies.append(ask(page, "/api/studies/0/figures/slow"))) for _ in "ab"
            ]
            for thread in asked:
                thread.start()
            assert begun.wait(60)
            assert drawn(ask(page, BEST)) == [0.5, 0.25]
            assert ask(page, "/api/studies/0/trials").json["total"] == 3
            assert ask(page, "/api/studies/0/overview").status == 200
            assert replies == []
            go_on.set()
            for thread in asked:
                thread.join(60)
            assert [reply.status for reply in replies] == [200, 200]

    def test_many_who_ask_at_once_let_it_be_computed_once(self, tmp_path, monkeypatch):
        made = []

        def make(session, seconds):
            made.append(seconds)
            return Drawing("one", "One", "", [])

        self.with_figures(monkeypatch, Figure("one", "One", make))
        with shown(study_file(tmp_path / "s.db")) as page:
            asked = [threading.Thread(target=ask, args=(page, "/api/studies/0/figures/one")) for _ in range(8)]
            for thread in asked:
                thread.start()
            for thread in asked:
                thread.join(60)
        assert len(made) == 1

    def test_an_error_of_a_figure_is_said_on_the_page_and_in_the_terminal(self, tmp_path, monkeypatch, caplog):
        def fail(session, seconds):
            raise RuntimeError("secret of /home/ann")

        def refuse(session, seconds):
            raise NoTrial(f"{tmp_path}/s.db: there is <b>nothing</b> to draw")

        self.with_figures(monkeypatch, Figure("bad", "Bad", fail), Figure("none", "None", refuse))
        with shown(study_file(tmp_path / "s.db")) as page, caplog.at_level("WARNING", logger.name):
            bad = ask(page, "/api/studies/0/figures/bad")
            assert (bad.status, bad.json["title"]) == (200, "Bad")
            assert "RuntimeError" in bad.json["reason"]
            assert b"secret" not in bad.body
            assert "secret of /home/ann" in caplog.text
            assert ask(page, "/api/studies/0/figures/none").json["reason"] == "s.db: there is <b>nothing</b> to draw"

    def test_large_answers_are_compressed_for_those_who_take_it(self, tmp_path, monkeypatch):
        numbers = list(range(5_000))
        drawing = Drawing("large", "Large", "", [{"y": numbers}])
        self.with_figures(monkeypatch, Figure("large", "Large", lambda session, seconds: drawing))
        with shown(study_file(tmp_path / "s.db")) as page:
            path = "/api/studies/0/figures/large"
            plain, zipped = ask(page, path), ask(page, path, accept_encoding="gzip, br")
            assert "content-encoding" not in plain.headers
            assert zipped.headers["content-encoding"] == "gzip"
            assert len(zipped.body) < len(plain.body) / 2
            assert gzip.decompress(zipped.body) == plain.body
            assert json.loads(plain.body)["data"][0]["y"] == numbers


class TestAssets:
    def test_plotly_is_sent_once_to_each_browser(self, tmp_path):
        with shown(study_file(tmp_path / "s.db")) as page:
            script = ask(page, "/assets/plotly.min.js", accept_encoding="gzip")
            assert b"plotly.js v" in gzip.decompress(script.body)[:500]
            assert script.headers["content-type"].startswith("text/javascript")
            again = ask(page, "/assets/plotly.min.js", if_none_match=script.headers["etag"])
            assert (again.status, again.body) == (304, b"")
            assert ask(page, "/favicon.ico").status == 204

    def test_the_page_is_html_and_its_style_and_script_are_there(self, tmp_path):
        with shown(study_file(tmp_path / "s.db")) as page:
            for path, kind in (
                ("/", "text/html"),
                ("/assets/page.css", "text/css"),
                ("/assets/page.js", "text/javascript"),
            ):
                reply = ask(page, path)
                assert reply.headers["content-type"].startswith(kind)
                assert reply.body


class TestKeptAnswers:
    """With a clock of its own."""

    def kept(self) -> tuple[KeptAnswers, list[float]]:
        now = [0.0]
        return KeptAnswers(lambda: now[0]), now

    def test_what_took_long_rests_for_three_times_as_long(self):
        kept, now = self.kept()

        def slow(text: bytes):
            def make() -> Answer:
                now[0] += 4.0
                return Answer(text)

            return make

        assert kept.answer("a", 1, slow(b"1"), rest=5.0).body == b"1"  # until 4
        assert kept.answer("a", 2, slow(b"2"), rest=5.0).body == b"1"  # it rests until 4 + 12
        now[0] = 15.9
        assert kept.answer("a", 2, slow(b"2"), rest=5.0).body == b"1"
        now[0] = 16.0
        assert kept.answer("a", 2, slow(b"2"), rest=5.0).body == b"2"

    def test_what_does_not_rest_is_always_of_the_present_stage(self):
        kept, _ = self.kept()
        assert [kept.answer("a", i, lambda i=i: Answer(b"%d" % i)).body for i in (1, 1, 2)] == [b"1", b"1", b"2"]

    def test_what_nobody_has_asked_for_lately_is_let_go(self):
        kept, _ = self.kept()
        for i in range(1_000):
            kept.answer(i, 1, lambda: Answer(b""))
        assert len(kept._kept) <= 100


def test_the_server_ends_at_once_also_with_open_streams(tmp_path):
    """A stream says something every 15 seconds: what waited for that would take longer than 5."""
    with shown(study_file(tmp_path / "s.db")) as page, listening(page) as messages:
        next(messages)
        began = time.monotonic()
        page.end()
        assert list(messages) == []
        until(lambda: page.socket.fileno() == -1)
        assert time.monotonic() - began < 5.0
