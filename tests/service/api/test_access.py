"""Who may do what, how often; and what no answer says."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from phdstream.app.config import load_config
from phdstream.app.serve import source_of
from phdstream.service.api.access import Rates
from phdstream.service.api.app import host
from phdstream.service.stream_service import StreamService
from phdstream.service.tokens import Tokens
from tests.service.api.serving import Make, row, test_client

READ = ["/v1", "/v1/ticks", "/v1/releases", "/v1/releases/latest", "/v1/releases/1/points", "/v1/counts?bbox=0,40,1,41",
        "/v1/metrics", "/v1/card", "/v1/page", "/v1/page/labels?tick=1", "/v1/page/ticks/latest"]  # fmt: skip
OPERATE = [("GET", "/v1/status"), ("POST", "/v1/reload"), ("POST", "/v1/ticks/1/errata")]
OPEN = ["/v1/health", "/v1/openapi.json"]


def test_roles(make: Make) -> None:
    """Every operation, with every token and without one."""
    one = make(service="rate = 100000")
    asked: list[tuple[str, str, str]] = [("GET", path, "read") for path in [*READ, "/v1/stream"]]
    asked += [(method, path, "operate") for method, path in OPERATE] + [("POST", "/v1/events", "ingest")]
    asked += [("POST", "/v1/counts", "read")]
    json: dict[str, Any] = {"text": "x", "rectangles": [[0, 40, 1, 41]]}
    for method, path, needed in asked:
        ask = {"json": json} if method == "POST" and path != "/v1/events" else {}
        for headers in (
            {},
            {"Authorization": "Bearer x"},
            {"Authorization": "Basic eDp5"},
            {"Authorization": "Bearer"},
        ):
            answer = one.client.request(method, path, headers=headers, **ask)
            assert answer.status_code == 401, path
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        for role in one.tokens:
            may = role == needed or (needed == "read" and role == "operate")
            if path != "/v1/stream" or not may:  # it would go on for ever
                answer = one.client.request(method, path, headers=one.by(role), **ask)
                assert (answer.status_code == 403) is not may, (path, role)
    for path in OPEN:
        assert one.get(path).status_code == 200


def test_every_operation_is_in_the_test_above(make: Make) -> None:
    described = make().get("/v1/openapi.json").json()["paths"]
    known = {path.partition("?")[0].replace("/1/points", "/{tick}/{part}").replace("latest", "{tick}") for path in READ}
    known |= {path.replace("/1/", "/{tick}/") for _, path in OPERATE} | {"/v1/events", "/v1/stream", "/v1/health"}
    assert set(described) == known | {"/v1/ready"}


def test_open_to_the_public(make: Make) -> None:
    """Anybody may read, and nobody may do more; a token that is none is not taken for no token."""
    one = make(service="public = true")
    assert one.get("/v1").status_code == 200
    assert one.get("/v1", headers={"Authorization": "Bearer x"}).status_code == 401
    assert one.get("/v1", headers=one.by("ingest")).status_code == 403
    assert one.get("/v1/status").status_code == 401
    assert one.client.post("/v1/events", content=b"").status_code == 401


def test_a_token_in_the_address_is_none(make: Make) -> None:
    one = make(service="")
    for name in ("token", "access_token", "api_key"):
        assert one.get("/v1", params={name: one.tokens["read"]}).status_code == 401


def test_tokens_come_and_go_while_the_service_runs(make: Make) -> None:
    one = make(service="")
    tokens = Tokens(one.folder / "private")
    secret = {"Authorization": f"Bearer {tokens.add('new', ('read',))}"}
    assert one.get("/v1", headers=secret).status_code == 200
    tokens.remove("new")
    assert one.get("/v1", headers=secret).status_code == 401
    kept = (one.folder / "private" / "tokens.json").read_text()
    assert all(token not in kept for token in one.tokens.values())
    (one.folder / "private" / "tokens.json").write_text("{")
    answer = one.get("/v1", headers=one.by("read"))
    assert answer.status_code == 503
    assert str(one.folder) not in answer.text


def test_rates(make: Make) -> None:
    """Each token, and each address without one, has its own rate; guessing tokens is counted, too."""
    one = make(service="rate = 3\npublic = true")
    statuses = [one.get("/v1").status_code for _ in range(12)]
    assert statuses[:3] == [200] * 3
    assert 429 in statuses
    last = next(answer for answer in (one.get("/v1") for _ in range(20)) if answer.status_code == 429)
    assert last.headers["Retry-After"]
    assert one.post([row(5)]).status_code == 200
    guesses = [one.get("/v1", headers={"Authorization": f"Bearer {i}"}).status_code for i in range(10)]
    assert 429 in guesses


def test_a_bucket(monkeypatch: pytest.MonkeyPatch) -> None:
    now, rates = [0.0], Rates()
    monkeypatch.setattr("phdstream.service.api.access.time.monotonic", lambda: now[0])
    assert [rates.take("a", 2) for _ in range(3)] == [True, True, False]
    assert rates.take("b", 2)
    now[0] += 0.5
    assert [rates.take("a", 2) for _ in range(2)] == [True, False]
    now[0] += 3600  # no more than a second's worth is saved up
    assert [rates.take("a", 2) for _ in range(3)] == [True, True, False]
    for caller in range(20_000):
        rates.take(str(caller), 2)
    assert len(rates._buckets) <= 10_000


def test_private_access_is_logged_without_contents(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    one = make()
    with caplog.at_level(logging.INFO):
        one.post([row(5, x=3.14159)], '"secret-key"')
        one.client.post("/v1/events", content=b"")
    said = [vars(record) for record in caplog.records if record.name == "phdstream.access"]
    assert [(entry["token"], entry["path"]) for entry in said] == [("ingest", "/v1/events"), (None, "/v1/events")]
    for private in ("3.14159", "secret-key", one.tokens["ingest"]):
        assert private not in str(said)


TRAVERSALS = [
    "/v1/releases/..%2f..%2fprivate", "/v1/releases/%2e%2e/points", "/v1/releases/../../private/tokens.json",
    "/v1/releases/1%00/points", "/v1/releases/-1", "/v1/releases/0", "/v1/releases/01", "/v1/releases/1e3",
    "/v1/releases/1/..%2f..%2fmanifest.json", "/v1/releases/1/points%2f..%2fcells", "/v1/releases/9999999999",
    "/v1/releases/latest%2f", "/v1/%2e%2e/private/intake.db", "//etc/passwd", "/v1/releases/\u0661",
    "/v1/releases/1/estimates", "/v1/releases/latest\n", "/v1/ticks/../../x", "/private/tokens.json",
]  # fmt: skip


@pytest.mark.parametrize("path", TRAVERSALS)
def test_traversal(make: Make, path: str) -> None:
    one = make()
    answer = one.get(path.replace("\n", "%0A"))
    assert answer.status_code in (404, 422)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert "digest" not in answer.text
    assert str(one.folder) not in answer.text


def test_headers_and_no_other_origins(make: Make) -> None:
    one = make()
    other = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    for answer in (
        one.get("/v1", headers=other),
        one.get("/v1/none", headers=other),
        one.client.options("/v1", headers=other),
    ):
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_no_stack_traces(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    one = make()

    def fail(*_: Any) -> None:
        raise RuntimeError(f"in {one.folder}: 3.14159")

    monkeypatch.setattr(one.service.archive, "manifest", fail)
    answer = one.get("/v1/releases")
    assert answer.status_code == 500
    assert answer.json()["title"] == "Internal Server Error"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert not [word for word in ("Traceback", "RuntimeError", "3.14159", str(one.folder)) if word in answer.text]


def test_reload(make: Make) -> None:
    """Limits and whether reading is public may change; anything else that changed is refused, and nothing is taken."""
    one = make(service="public = true\nrate = 100000")
    before = one.path.read_text()
    one.path.write_text(before.replace("public = true", 'public = false\nbody = "1kB"'))
    assert one.client.post("/v1/reload", headers=one.by("operate")).status_code == 204
    assert one.get("/v1").status_code == 401
    assert one.post(b" " * 1025).status_code == 413
    for old, new in (
        ("epsilon = 1.0", "epsilon = 2.0"),
        ("readers = 1", "readers = 2"),
        ("10.0]", "11.0]"),
        ("[[", "["),
    ):
        one.path.write_text(before.replace(old, new))
        answer = one.client.post("/v1/reload", headers=one.by("operate"))
        assert answer.status_code == 422, new
        assert one.get("/v1").status_code == 401
    one.path.write_text(before)
    assert one.client.post("/v1/reload", headers=one.by("operate")).status_code == 204
    assert one.get("/v1").status_code == 200


def test_several_streams_in_one_service(make: Make) -> None:
    """Each has its own address, tokens, events and folder."""
    made = [make(name, service=f'name = "{name}"\npublic = true') for name in ("north", "south")]
    for one in made:
        one.service.stop()
    services = [StreamService(source_of(load_config(one.path), one.path)) for one in made]
    with test_client(host(services)) as client:
        listed = client.get("/").json()["streams"]
        assert listed == {name: f"http://testserver/{name}/v1" for name in ("north", "south")}
        for one in made:
            assert client.get(f"/{one.folder.name}/v1").json()["name"] == one.folder.name
        headers = {"Content-Type": "application/x-ndjson", "Idempotency-Key": '"a"'} | made[0].by("ingest")
        assert client.post("/north/v1/events", headers=headers, content=b"{}").status_code == 422
        assert client.post("/south/v1/events", headers=headers, content=b"{}").status_code == 401
        assert client.get("/v1").status_code == 404
        assert client.get("/none/v1").headers["Content-Type"] == "application/problem+json"
        large = b"x" * (5 << 20)
        assert client.post("/north/v1/counts", content=large).status_code == 413
        assert client.get("/").headers["X-Content-Type-Options"] == "nosniff"
    for one in made:
        one.open()
