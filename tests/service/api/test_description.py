"""The service answers as its OpenAPI description says, whatever it is asked: checked by Schemathesis."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings

from tests.service.api.serving import Served
from tests.thorough import cases

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.checks")
WANTED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


@pytest.fixture(scope="module")
def operations(released: Served) -> dict[str, Any]:
    schema = schemathesis.openapi.from_asgi("/v1/openapi.json", released.app)
    found = [result.ok() for result in schema.get_all_operations()]
    return {f"{operation.method.upper()} {operation.path}": operation for operation in found}


OPERATIONS = [
    "GET /v1", "GET /v1/ticks", "GET /v1/card", "GET /v1/metrics", "GET /v1/health", "GET /v1/ready",
    "POST /v1/ticks/{tick}/errata", "POST /v1/reload", "GET /v1/status", "POST /v1/events", "GET /v1/releases",
    "GET /v1/releases/{tick}", "GET /v1/releases/{tick}/{part}", "GET /v1/counts", "POST /v1/counts",
    "GET /v1/page", "GET /v1/page/labels", "GET /v1/page/ticks/{tick}",
]  # fmt: skip
ROLES = {"POST /v1/events": "ingest", "GET /v1/status": "operate", "POST /v1/reload": "operate",
         "POST /v1/ticks/{tick}/errata": "operate"}  # fmt: skip

PLAIN = ("GET /v1/health", "GET /v1/ready")
"""Operations that take nothing, so that nothing can be wrong with a request."""


@schemathesis.serializer("application/x-ndjson", "application/vnd.apache.arrow.stream")
def as_bytes(context: Any, value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass")


def test_all_operations_are_here(operations: dict[str, Any]) -> None:
    assert set(operations) == {*OPERATIONS, "GET /v1/stream"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "wrong"),
    [(name, wrong) for name in OPERATIONS for wrong in (False, True) if not wrong or name not in PLAIN],
)
def test_as_described(operations: dict[str, Any], released: Served, name: str, wrong: bool) -> None:
    mode = schemathesis.GenerationMode.NEGATIVE if wrong else schemathesis.GenerationMode.POSITIVE
    wanted = checks.CHECKS.get_by_names(list(WANTED))
    headers = released.by(ROLES.get(name, "read"))
    strategy = operations[name].as_strategy(generation_mode=mode)

    @settings(
        max_examples=cases(15, 300), deadline=None, suppress_health_check=list(HealthCheck), database=None,
        phases=[Phase.explicit, Phase.generate],
    )  # fmt: skip
    @given(case=strategy)
    def ask(case: Any) -> None:
        case.call_and_validate(checks=wanted, headers=headers)

    ask()
