"""The screenshots in README and in docs/: a report, and a live page with the study that it shows still running.

    .venv/bin/python docs/figures/screens.py [FOLDER]        trains for two minutes; writes docs/images/*.png

Needs what `make test` installs, and Chromium or Chrome (or CHROME=/path/to/one). The two studies are real: a random
forest and a network on scikit-learn's digits. Times differ from machine to machine, and so do the pictures.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import farthing as ft
from farthing.problems.demo import SPACE, objective
from farthing.report.live.server import LivePage
from farthing.report.saving import report_of_files

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

IMAGES = Path(__file__).resolve().parent.parent / "images"
BUDGET = "60s"
WIDE, NARROW = {"width": 1180, "height": 800}, {"width": 390, "height": 800}

NETWORK = ft.Space(
    rate=ft.Real(1e-4, 1e-1, log=True),
    units=ft.Integer(8, 256, log=True),
    alpha=ft.Real(1e-6, 1e-1, log=True),
    batch=ft.Ordered([16, 32, 64, 128], log=True),
)


def train(config: dict[str, Any]) -> Iterator[float]:
    """Thirty epochs of a network; the share of held-out digits that are classified wrongly after each."""
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier

    images, labels = load_digits(return_X_y=True)
    rows, others, answers, hidden = train_test_split(images / 16.0, labels, test_size=0.4, random_state=0)
    model = MLPClassifier(
        (config["units"],), learning_rate_init=config["rate"], alpha=config["alpha"], batch_size=config["batch"],
        random_state=0,
    )  # fmt: skip
    for _ in range(30):
        model.partial_fit(rows, answers, classes=range(10))
        yield 1.0 - float(model.score(others, hidden))


def studies(folder: Path) -> list[str]:
    """The files of two studies: one of whole evaluations, one of trainings that are paused."""
    forest, network = str(folder / "forest.db"), str(folder / "network.db")
    ft.tune(objective, SPACE, BUDGET, seed=0, storage=forest)
    ft.tune(train, NETWORK, BUDGET, max_steps=30, seed=0, storage=network)
    return [forest, network]


@contextmanager
def browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROME") or shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield opened
        opened.close()


def tab(opened: Browser, url: str, **options: Any) -> Page:
    """A page with all its figures drawn."""
    page = opened.new_page(device_scale_factor=1.5, **options)
    page.goto(url)
    page.wait_for_selector("#study:not([hidden])")
    look(page)
    return page


def look(page: Page) -> None:
    for figure in page.query_selector_all(".figure:not([hidden])"):
        figure.evaluate("one => one.scrollIntoView()")  # which draws it
        page.wait_for_function("one => !one.querySelector('.waiting') || one.hidden", arg=figure)
    page.evaluate("scrollTo(0, 0)")
    page.wait_for_timeout(300)


def figures(page: Page, *names: str) -> list[tuple[str, bytes]]:
    return [(name, page.locator(f"[data-figure={name}]").screenshot()) for name in names]


def of_the_report(opened: Browser, files: list[str], folder: Path) -> Iterator[tuple[str, bytes]]:
    path = folder / "report.html"
    path.write_text(report_of_files(files), encoding="utf-8")
    page = tab(opened, path.as_uri(), viewport=WIDE)
    yield "report", page.screenshot()
    yield from figures(
        page, "best_value", "cost_per_trial", "predicted_cost", "importance", "dependence", "parallel",
        "pareto", "implied_alpha",
    )  # fmt: skip
    page.select_option("#studies", "1")
    page.wait_for_selector("#name:has-text('network')")
    look(page)
    yield from figures(page, "curves")
    page = tab(opened, path.as_uri(), viewport=NARROW, color_scheme="dark", has_touch=True)
    yield "report-phone-dark", page.screenshot()


def of_the_live_page(opened: Browser, folder: Path) -> Iterator[tuple[str, bytes]]:
    """With a study that runs in this process meanwhile."""
    file = str(folder / "live.db")
    ft.tune(objective, SPACE, "10s", seed=1, storage=file)
    study = ft.Study.resume(file, budget=BUDGET)
    run = Thread(target=lambda: study.run(objective, progress=False))
    live = LivePage([file], port=0, control=True)
    server = Thread(target=live.run)
    run.start(), server.start()
    try:
        page = tab(opened, live.link, viewport=WIDE)
        page.wait_for_timeout(3_000)
        yield "live", page.screenshot()
        page.close()
    finally:
        study.stop()
        run.join()
        live.end()
        server.join()


def main() -> None:
    images = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    images.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary, browser() as opened:
        folder = Path(temporary)
        for shots in (of_the_report(opened, studies(folder), folder), of_the_live_page(opened, folder)):
            for name, image in shots:
                (images / f"{name}.png").write_bytes(image)


if __name__ == "__main__":
    main()
