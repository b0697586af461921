"""A real notebook, run as Jupyter runs it: the bar of a run is one output that is updated, and results are cards."""

from __future__ import annotations

import warnings
from typing import Any

import pytest

import farthing as ft
from farthing.runner.notebook import MESSAGES, Notebook, is_notebook

CELLS = {
    "run": """
import time
import farthing as ft

def objective(config):
    time.sleep(0.03)
    if config["x"] > 0.7:
        raise ValueError("<script>alert(1)</script>")
    return config["x"]

study = ft.tune(objective, ft.Space(x=ft.Real(0, 1)), "5m, 60 evaluations", policy="random", seed=0, isolate=False)
""",
    "study": "study",
    "ledger": "study.ledger",
    "best": "study.best",
    "silent": "ft.tune(objective, study.space, '2 evaluations', policy='random', progress=False); None",
    "stopped": """
study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0)
def stopped(config):
    if len(study.trials) == 3:
        raise KeyboardInterrupt
    return config["x"]
try:
    study.run(stopped, isolate=False)
except KeyboardInterrupt:
    print("interrupted")
""",
    "threads": "import threading; [thread.name for thread in threading.enumerate() if 'farthing' in thread.name]",
}


@pytest.fixture(scope="module")
def ran() -> dict[str, Any]:
    """The outputs of each cell, and the messages that updated a display."""
    import nbformat
    from nbclient import NotebookClient

    class Recording(NotebookClient):
        def process_message(self, msg: Any, cell: Any, cell_index: int) -> Any:
            if msg["msg_type"] in ("display_data", "update_display_data"):
                messages.append((cell_index, msg["msg_type"], msg["content"]))
            return super().process_message(msg, cell, cell_index)

    messages: list[tuple[int, str, dict[str, Any]]] = []
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code) for code in CELLS.values()])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Jupyter's own
        Recording(notebook, timeout=120, kernel_name="python3").execute()
    outputs = {name: cell.outputs for name, cell in zip(CELLS, notebook.cells, strict=True)}
    return {**outputs, "messages": messages}


def test_progress_is_one_output_that_was_updated_a_few_times(ran):
    (output,) = ran["run"]
    assert output.output_type == "display_data"
    (first, *updates) = [(kind, content) for cell, kind, content in ran["messages"] if cell == 0]
    assert first[0] == "display_data"
    assert 2 <= len(updates) <= 40, "not one for each trial"
    assert {kind for kind, _ in updates} == {"update_display_data"}
    assert len({content["transient"]["display_id"] for _, content in [first, *updates]}) == 1
    assert "0% of 5m, 60 evaluations" in first[1]["data"]["text/plain"]
    assert output.data == updates[-1][1]["data"]


def test_at_the_end_it_shows_the_result_why_it_ended_and_what_more_would_bring(ran):
    data = ran["run"][0].data
    for form in ("text/html", "text/plain"):
        for part in ("100% of 5m, 60 evaluations", "ended: the budget of 60 evaluations is spent", " done, ",
                     "expected to bring"):  # fmt: skip
            assert part in data[form], (form, part)
    assert "running" not in data["text/plain"]


def test_errors_are_shown_once_for_each_kind_and_escaped(ran):
    page = ran["run"][0].data["text/html"]
    assert page.count("failed: ValueError") == 1
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "<script" not in page


def test_results_are_cards(ran):
    for name, part in {
        "study": "60 trials: ",
        "ledger": "100% of 5m, 60 evaluations used",
        "best": "drawn at random",
    }.items():
        (output,) = ran[name]
        assert output.output_type == "execute_result"
        assert part in output.data["text/html"]
        assert output.data["text/html"].startswith("<div style=")
    assert "<svg" in ran["study"][0].data["text/html"]


def test_progress_false_shows_nothing_and_no_thread_is_left(ran):
    assert ran["silent"] == []
    assert ran["threads"][0].data["text/plain"] == "[]"


def test_after_ctrl_c_the_bar_says_what_was_found(ran):
    bar, *_ = ran["stopped"]
    assert "interrupted after 3 trials; the best is trial" in bar.data["text/plain"]
    assert [output.output_type for output in ran["stopped"]] == ["display_data"], "at a prompt the study is returned"


class TestOutsideOfANotebook:
    def test_a_terminal_with_ipython_is_no_notebook(self):
        import IPython  # noqa: F401 - loaded, and not running

        assert not is_notebook()

    def test_a_front_end_that_fails_does_not_end_a_run(self, monkeypatch):
        """There is no kernel here: every display fails or goes nowhere."""
        monkeypatch.setattr("IPython.display.display", lambda *given, **named: 1 / 0)
        study = ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations", policy="random", seed=0)
        with Notebook(study._session) as shown:
            shown.message("something")
        assert study.run(lambda config: config["x"], progress=False).best

    def test_only_the_last_messages_stay(self):
        shown = Notebook(ft.Study(ft.Space(x=ft.Real(0, 1)), "4 evaluations")._session)
        for number in range(50):
            shown.message(f"error {number} " + "x" * 100_000)
        text, plain = shown._bundle().values()
        assert len(plain) < 2_000
        assert text.count("error") == MESSAGES
        assert "error 49" in text
        assert len(text) < 5_000
