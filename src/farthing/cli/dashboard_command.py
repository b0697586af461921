"""`farthing dashboard`: study files as a page in a browser, live while they grow."""

from __future__ import annotations

import signal
import threading
import webbrowser
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

import click

from farthing.cli.group import DEBUG, group
from farthing.cli.streams import show, warn
from farthing.text.escaping import on_one_line

if TYPE_CHECKING:
    from farthing.report.live.server import LivePage

TERMINATED = 128 + signal.SIGTERM


@group.command()
@click.argument("studies", metavar="STUDY...", nargs=-1, required=True, type=click.Path(dir_okay=False))
@click.option(
    "--host", metavar="TEXT", default="127.0.0.1", show_default=True,
    help="The address to listen at; one that others can reach needs --token or --control.",
)  # fmt: skip
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8765, show_default=True, help="The port; 0 finds a free one."
)
@click.option(
    "--control", is_flag=True,
    help="Let the page pause, resume and stop the study, raise its budget and add configurations. Prints a token.",
)  # fmt: skip
@click.option(
    "--token", "private", is_flag=True, help="Show the page only to whoever has the token in the printed link."
)
@click.option("--open", "open_it", is_flag=True, help="Open the page in the browser.")
@DEBUG
def dashboard(studies: tuple[str, ...], host: str, port: int, control: bool, private: bool, open_it: bool) -> None:
    """Show studies in the browser, live while they run. Ctrl-C ends it.

    The page only shows, unless --control is given. A STUDY may be a file that is made later.

    \b
    farthing dashboard s.db
    farthing dashboard s.db other.db --open
    farthing dashboard s.db --control
    ssh -L 8765:127.0.0.1:8765 machine farthing dashboard s.db
    """
    from farthing.report.live.server import LivePage

    page = LivePage(studies, host, port, control=control, private=private)
    for study in studies:
        if not Path(study).exists():
            warn(f"{study}: there is no such file yet; the page shows it when it is there")
    _say_where(page, control)
    if open_it:
        # without the token: other users of the machine see the arguments of a browser that is started
        threading.Thread(target=webbrowser.open, args=(page.address,), daemon=True).start()
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _terminated)
    page.run()


def _say_where(page: LivePage, control: bool) -> None:
    show(f"page        {on_one_line(page.link)}")
    if page.token is not None:
        show(f"token       {page.token}")
    show(f"it can      {'show and change studies: keep the link to yourself' if control else 'only show studies'}")
    show("end         Ctrl-C")


def _terminated(number: int, frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)
