"""The socket and the server of the live page: `serve` shows studies until a signal ends it."""

from __future__ import annotations

import errno
import socket
from collections.abc import Sequence
from contextlib import closing
from types import FrameType
from typing import Any

from farthing.errors import InvalidArgument
from farthing.numerics.threads import one_blas_thread
from farthing.report.figures.best_value import drawn_at_a_glance
from farthing.report.live.app import Site, app_of
from farthing.report.live.guard import Guard, in_address, is_loopback, new_token
from farthing.report.live.studies import Glance, Studies
from farthing.report.live.watching import require_study

PORT = 8765
PATIENCE = 0.5  # seconds that answers under way may still take at the end
MOST_CONNECTIONS = 300
MISSING = "the live page needs starlette, uvicorn and plotly: pip install 'farthing[dashboard]'"


class LivePage:
    """A server that listens, and shows studies once it runs.

    `control` lets the page change something, `private` asks for the token for reading too; both make a token. A host
    that others can reach is refused without one.
    """

    def __init__(
        self, paths: Sequence[str], host: str = "127.0.0.1", port: int = PORT, *, control: bool = False,
        private: bool = False, glance: Glance | None = drawn_at_a_glance,
    ) -> None:  # fmt: skip
        require_extra()
        if not (is_loopback(host) or control or private):
            raise InvalidArgument(
                f"host: others can reach {host!r}, so this needs --token, or a host of this machine alone (127.0.0.1)"
            )
        for path in paths:
            require_study(path)
        self.socket = listening(host, port)
        self.host, self.port = host, self.socket.getsockname()[1]
        self.token = new_token() if control or private else None
        self._private = private or not is_loopback(host)
        guard = Guard(host, self.port, self.token, reading_needs_token=self._private, changes=control)
        self.studies = Studies(paths, glance)
        self._server = _server(Site(self.studies, guard))

    @property
    def address(self) -> str:
        """Of the page, without a token."""
        return f"http://{in_address(self.host)}:{self.port}/"

    @property
    def link(self) -> str:
        """The address that opens the page with all that it may do: a browser sends the part after # to nobody."""
        if self.token is None:
            return self.address
        return f"{self.address}{'?' if self._private else '#'}token={self.token}"

    def run(self) -> None:
        """Answer until `end` or a signal, which is raised again when all is closed."""
        with closing(self.socket), one_blas_thread():
            try:
                self._server.run(sockets=[self.socket])
            finally:
                self.studies.close()

    def end(self) -> None:
        """Let `run` return; from any thread."""
        self._server.should_exit = True
        self.studies.close()


def require_extra() -> None:
    """An ImportError that says what to install, unless all is there."""
    try:
        import plotly  # noqa: F401
        import starlette  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(MISSING) from error


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens there."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=128)
    except socket.gaierror as error:
        raise InvalidArgument(f"host: {host!r} is not known here ({error.strerror})") from error
    except OverflowError as error:
        raise InvalidArgument(f"port: expected 0 to 65535, got {port}") from error
    except OSError as error:
        what = "is taken: --port 0 finds a free one" if error.errno == errno.EADDRINUSE else f"({error.strerror})"
        raise OSError(f"cannot listen at {in_address(host)}:{port} {what}") from error


def _server(site: Site) -> Any:
    """That of uvicorn, which ends open streams when a signal comes: it would wait for them."""
    import uvicorn

    class Server(uvicorn.Server):  # type: ignore[misc]  # has no types here
        def handle_exit(self, number: int, frame: FrameType | None) -> None:
            site.studies.close()
            super().handle_exit(number, frame)

    return Server(
        uvicorn.Config(
            app_of(site), http="h11", ws="none", loop="asyncio", lifespan="off", log_config=None,
            log_level="critical", access_log=False, proxy_headers=False, server_header=False,
            limit_concurrency=MOST_CONNECTIONS, timeout_graceful_shutdown=PATIENCE,
        )
    )  # fmt: skip
