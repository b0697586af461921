"""Who is answered: each rule of the guard with real requests to a real server."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from farthing.errors import InvalidArgument
from farthing.record.mailbox import waiting
from farthing.report.live.guard import MOST_BODY, MOST_WRONG, WITHIN, Guard, Visit
from farthing.report.live.server import LivePage
from live_pages import Reply, ask, change, shown, study_file

PAUSE = {"action": "pause"}
DATA = ["/api/studies", "/api/studies/0/overview", "/api/studies/0/figures/best_value", "/api/studies/0/trials"]


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return study_file(tmp_path_factory.mktemp("studies") / "s.db")


@pytest.fixture(scope="module")
def page(study: Path) -> Iterator[LivePage]:
    """One that may change something."""
    with shown(study, control=True) as page:
        yield page


@pytest.fixture(scope="module")
def readonly(study: Path) -> Iterator[LivePage]:
    with shown(study) as page:
        yield page


@pytest.fixture(scope="module")
def private(study: Path) -> Iterator[LivePage]:
    with shown(study, private=True) as page:
        yield page


def refused(reply: Reply, status: int) -> None:
    """With an error in JSON, that says nothing of the machine or of the program."""
    assert reply.status == status, (reply.status, reply.body)
    assert list(reply.json) == ["error"]
    assert "Traceback" not in reply.json["error"]
    assert "/" not in reply.json["error"].replace("application/json", "")


class TestHosts:
    @pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "LOCALHOST", "[::1]"])
    def test_this_machine_is_answered_under_its_names(self, page, host):
        assert ask(page, "/api/studies", host=f"{host}:{page.port}").status == 200

    @pytest.mark.parametrize("host", [
        "evil.example:{}", "127.0.0.1.evil.example:{}", "127.0.0.1", "127.0.0.1:1", "", "[", "10.0.0.1:{}",
        "localhost:{}@evil.example", "localhost:{}x",
    ])  # fmt: skip
    @pytest.mark.parametrize("path", ["/", "/api/studies", "/assets/page.js"])
    def test_a_name_that_leads_here_by_dns_rebinding_is_not_answered(self, page, host, path):
        refused(ask(page, path, host=host.format(page.port)), 421)

    def test_two_hosts_are_none(self, page):
        with socket.create_connection(("127.0.0.1", page.port)) as connection:
            hosts = f"Host: evil.example\r\nHost: 127.0.0.1:{page.port}\r\n"
            connection.sendall(f"GET /api/studies HTTP/1.1\r\n{hosts}Connection: close\r\n\r\n".encode())
            assert connection.makefile("rb").readline().split()[1] in (b"400", b"421")

    def test_an_address_that_is_rewritten_by_a_proxy_header_is_not_believed(self, page):
        refused(ask(page, "/api/studies", host="evil.example", x_forwarded_host=f"127.0.0.1:{page.port}"), 421)

    def test_a_server_on_all_addresses_knows_addresses_and_its_own_name_and_no_other(self):
        guard = Guard("0.0.0.0", 80, "t")

        def status(host: str) -> int | None:
            answer = guard.instead(Visit("GET", "/api/studies", {"host": [host], "x-farthing-token": ["t"]}))
            return answer and answer.status

        assert [status(host) for host in ("10.1.2.3", "[fe80::1]:80", socket.gethostname())] == [None] * 3
        assert [status(host) for host in ("evil.example", "10.1.2.3:81")] == [421, 421]


class TestOtherPages:
    @pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:{}",
                                        "http://127.0.0.1:{}.evil.example", "http://localhost:{}"])  # fmt: skip
    def test_a_change_from_another_origin_is_refused_even_with_the_token(self, page, study, origin):
        refused(change(page, PAUSE, origin=origin.format(page.port)), 403)
        assert waiting(study) == []

    @pytest.mark.parametrize("site", ["cross-site", "same-site", "anything"])
    def test_a_change_from_another_site_is_refused_even_with_the_token(self, page, study, site):
        refused(change(page, PAUSE, origin="", sec_fetch_site=site), 403)
        assert waiting(study) == []

    @pytest.mark.parametrize("path", [*DATA, "/api/stream", "/assets/page.js"])
    def test_another_page_cannot_include_anything_of_this_one(self, page, path):
        refused(ask(page, path, sec_fetch_site="cross-site", sec_fetch_mode="no-cors"), 403)

    def test_a_link_to_the_page_can_be_followed(self, page):
        assert ask(page, "/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200

    @pytest.mark.parametrize("method", ["GET", "OPTIONS", "POST"])
    def test_no_answer_says_that_other_origins_may_read_it(self, page, method):
        reply = ask(page, "/api/studies", method, origin="http://evil.example", access_control_request_method="POST")
        assert reply.status in (403, 405, 415)
        assert not [name for name in reply.headers if name.startswith("access-control")]

    @pytest.mark.parametrize("path", ["/", "/nothing", *DATA])
    def test_every_answer_has_the_headers_that_keep_a_browser_careful(self, page, path):
        headers = ask(page, path).headers
        policy = dict(part.strip().partition(" ")[::2] for part in headers["content-security-policy"].split(";"))
        assert policy["default-src"] == policy["frame-ancestors"] == policy["base-uri"] == "'none'"
        assert policy["script-src"] == policy["connect-src"] == "'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == ("no-cache" if path == "/" else "no-store")
        assert "server" not in headers


class TestTokens:
    def test_a_change_with_the_token_is_put_into_the_mailbox(self, tmp_path):
        study = study_file(tmp_path / "s.db")
        with shown(study, control=True) as page:
            assert ask(page, "/api/control").json == {"enabled": True}
            reply = change(page, {"action": "enqueue", "config": {"x": 0.5, "kind": "a"}})
            assert (reply.status, reply.json["accepted"]) == (200, True)
            assert "waits for the next run" in reply.json["said"]
            (_, request), *others = waiting(study)
            assert (request.action, request.config, others) == ("enqueue", {"x": 0.5, "kind": "a"}, [])

    @pytest.mark.parametrize("token", ["", "wrong", "ü", "null"])
    def test_a_change_without_the_token_is_refused(self, study, token):
        with shown(study, control=True) as page:
            refused(change(page, PAUSE, x_farthing_token=token), 401)
            refused(change(page, PAUSE, f"/api/studies/0/control?token={page.token}", x_farthing_token=token), 401)
            refused(change(page, PAUSE, x_farthing_token=token, cookie=f"farthing-{page.port}={page.token}"), 401)
        assert waiting(study) == []

    def test_a_page_that_only_shows_changes_nothing_whatever_is_sent(self, readonly, study):
        assert readonly.token is None
        assert ask(readonly, "/api/control").json == {"enabled": False}
        for token in ("", "None", "null"):
            refused(change(readonly, PAUSE, x_farthing_token=token), 403)
        assert waiting(study) == []

    def test_a_private_page_shows_nothing_without_its_token(self, private):
        for path in (*DATA, "/api/stream", "/api/control", "/assets/page.js", "/nothing"):
            refused(ask(private, path), 401)
        page = ask(private, "/")
        assert page.status == 401
        assert b"token" in page.body
        assert ask(private, "/api/studies", x_farthing_token=private.token).status == 200

    def test_the_link_of_a_private_page_opens_it_by_a_cookie_that_no_script_can_read(self, private):
        entered = ask(private, f"/?token={private.token}")
        assert (entered.status, entered.headers["location"]) == (303, "/")
        cookie, *attributes = [part.strip() for part in entered.headers["set-cookie"].split(";")]
        assert {"HttpOnly", "SameSite=Strict"} <= set(attributes)
        assert private.token not in cookie
        assert all(ask(private, path, cookie=f"other=1; {cookie}").status == 200 for path in ("/", *DATA))
        refused(ask(private, "/api/studies", cookie=f"{cookie[:-1]}x"), 401)

    def test_the_cookie_reads_and_changes_nothing(self, study):
        with shown(study, private=True, control=True) as page:
            entered = ask(page, f"/?token={page.token}")
            assert entered.headers["location"] == f"/#token={page.token}"
            cookie = entered.headers["set-cookie"].partition(";")[0]
            assert ask(page, "/api/studies", cookie=cookie).status == 200
            refused(change(page, PAUSE, x_farthing_token="", cookie=cookie), 401)
        assert waiting(study) == []

    def test_wrong_tokens_are_slowed_down_for_a_minute(self):
        now = [0.0]
        guard = Guard("127.0.0.1", 80, "right", reading_needs_token=True, clock=lambda: now[0])

        def status(token: str, address: str = "a") -> int | None:
            headers = {"host": ["localhost:80"], "x-farthing-token": [token]}
            answer = guard.instead(Visit("GET", "/api/studies", headers, address=address))
            return answer and answer.status

        assert [status("wrong") for _ in range(MOST_WRONG)] == [401] * MOST_WRONG
        assert [status("right"), status("wrong"), status("right", "b")] == [429, 429, None]
        now[0] = WITHIN + 1
        assert status("right") is None

    def test_many_wrong_tokens_are_refused_by_the_server(self, study):
        with shown(study, control=True) as page:
            seen = [change(page, PAUSE, x_farthing_token="wrong").status for _ in range(MOST_WRONG + 1)]
            assert seen == [401] * MOST_WRONG + [429]
            late = ask(page, "/?token=wrong")
            assert (late.status, late.headers["retry-after"]) == (429, "60")

    @pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
    def test_a_host_that_others_reach_is_refused_without_a_token(self, study, host):
        with pytest.raises(InvalidArgument, match="--token"):
            LivePage([str(study)], host, 0)
        with pytest.raises(ValueError, match="token"):
            Guard(host, 80)

    def test_a_host_that_others_reach_needs_the_token_for_reading_too(self, study):
        with shown(study, host="0.0.0.0", control=True) as page:
            refused(ask(page, "/api/studies"), 401)
            assert ask(page, "/api/studies", x_farthing_token=page.token).status == 200
            assert "?token=" in page.link

    def test_tokens_are_long_and_differ(self, study):
        tokens = []
        for _ in range(3):
            page = LivePage([str(study)], port=0, control=True)
            page.end()
            page.socket.close()
            tokens.append(page.token)
        assert len(set(tokens)) == 3
        assert min(map(len, tokens)) >= 40


class TestRequests:
    @pytest.mark.parametrize("path", [
        "/../../../../etc/passwd", "/assets/../../../etc/passwd", "/assets/%2e%2e/%2e%2e/app.py",
        "/assets/..%2f..%2fapp.py", "/assets/%252e%252e%252fapp.py", "/assets//etc/passwd", "/assets/%00",
        "/assets/page.js%00.png", "/assets/", "/assets/page.html", "/assets\\..\\app.py",
        "/api/studies/../../etc/passwd",
        "/api/studies/%2fetc%2fpasswd/overview", "/api/studies/0/figures/..%2f..%2f", "/api/studies/-1/overview",
        "/api/studies/1/overview", "/s.db", "/%2fs.db",
        "/api/studies/0/figures/__class__", "//etc/passwd", "/api/studies/", "/api/studies/0",
    ])  # fmt: skip
    def test_no_path_leads_to_a_file(self, page, path):
        refused(ask(page, path), 404)

    def test_an_address_in_the_place_of_a_path_leads_nowhere_else(self, page):
        assert ask(page, "http://evil.example/etc/passwd").status in (400, 404)

    @pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT", "BREW"])
    @pytest.mark.parametrize("path", ["/", "/api/studies", "/api/studies/0/control"])
    def test_other_methods_are_refused(self, page, method, path):
        refused(ask(page, path, method, x_farthing_token=page.token), 405)

    def test_what_is_read_is_not_posted_and_what_is_posted_not_read(self, page):
        refused(change(page, {}, "/api/studies"), 405)
        refused(ask(page, "/api/studies/0/control"), 405)

    def test_a_large_body_is_refused_by_its_length(self, page, study):
        refused(change(page, b"{" + b" " * MOST_BODY + b"}"), 413)
        refused(ask(page, "/api/studies", body=b"x", content_length=str(10**12)), 413)
        assert waiting(study) == []

    def test_a_large_body_that_does_not_say_its_length_is_refused(self, page, study):
        """Sent in pieces without end, it is not collected either: the answer comes before all is sent."""
        connection = http.client.HTTPConnection("127.0.0.1", page.port, timeout=60)
        headers = {"Content-Type": "application/json", "X-Farthing-Token": page.token, "Transfer-Encoding": "chunked"}
        connection.request("POST", "/api/studies/0/control", iter([b" " * 16_384] * 5), headers, encode_chunked=True)
        assert connection.getresponse().status == 413
        connection.close()
        assert waiting(study) == []

    @pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
    def test_what_a_form_of_another_page_can_send_is_refused(self, page, study, kind):
        refused(change(page, PAUSE, content_type=kind), 415)
        assert waiting(study) == []

    @pytest.mark.parametrize("body", [
        b"", b"{", b"[]", b"null", b'"pause"', b'{"action": "format"}', b'{"action": ["pause"]}',
        b'{"action": "budget", "budget": "cost=1"}', b'{"action": "budget", "budget": "1 evaluations"}',
        b'{"action": "budget"}', b'{"action": "budget", "budget": 5}',
        b'{"action": "pause", "path": "s.db"}', b"[" * 60_000, b"\xff\xfe",
        b'{"action": "enqueue", "config": {"x": NaN, "kind": "a"}}', b'{"action": "enqueue", "config": {"x": 7}}',
        b'{"action": "enqueue", "config": {"x": 0.5, "kind": "c"}}',
        b'{"action": "budget", "budget": "' + b"9" * 5000 + b'"}',
        b'{"action": "enqueue", "config": {"x": ' + b"9" * 5000 + b', "kind": "a"}}',
    ])  # fmt: skip
    def test_a_request_that_makes_no_sense_is_refused_with_the_reason(self, page, study, body):
        reply = change(page, body)
        assert reply.status == 400, reply.body
        assert 10 < len(reply.json["error"]) < 700
        assert waiting(study) == []

    @pytest.mark.parametrize("query", [
        "sort=nothing", "count=-1", "count=100000", "offset=x", "descending=yes", "count=1e3", "offset=99999999999",
        "sort=" + "x" * 5000, "count=%D9%A3",
    ])  # fmt: skip
    def test_a_part_of_the_table_that_makes_no_sense_is_refused(self, page, query):
        reply = ask(page, f"/api/studies/0/trials?{query}")
        assert reply.status == 400
        assert len(reply.json["error"]) < 700

    def test_no_answer_says_where_the_study_lies(self, page, study):
        seen = b"".join(ask(page, path).body for path in (*DATA, "/api/figures", "/nothing"))
        assert str(study.parent).encode() not in seen
        assert json.loads(ask(page, "/api/studies").body)[0]["name"] == "s.db"
