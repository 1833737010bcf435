"""What is deployed and documented names what there is."""

from __future__ import annotations

import json
import re
from dataclasses import fields
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from phdstream.service.api.system import _registry
from phdstream.service.settings import KNOWN, ServiceSettings
from tests.service.streams import HandClock, service_at, write_config

ROOT = Path(__file__).parents[2]


def test_the_dashboard_and_the_alerts_show_metrics_that_there_are(tmp_path: Path) -> None:
    from prometheus_client import generate_latest

    service = service_at(write_config(tmp_path), HandClock())
    there = {family.name for family in text_string_to_metric_families(generate_latest(_registry(service)).decode())}
    service.stop()
    for name in ("grafana-dashboard.json", "prometheus-alerts.yml"):
        text = (ROOT / "deploy" / name).read_text()
        used = set(re.findall(r"\bphdstream_[a-z_]+", text))
        assert used
        assert used <= there
    json.loads((ROOT / "deploy" / "grafana-dashboard.json").read_text())


def test_every_setting_is_documented() -> None:
    page = (ROOT / "docs" / "configuration.md").read_text()
    section = page[page.index("| `[service]`") :]
    assert {field.name for field in fields(ServiceSettings)} == KNOWN
    assert all(f"`{name}`" in section for name in KNOWN)


def test_units_and_containers_call_commands_that_there_are() -> None:
    from typer.main import get_command

    from phdstream.app.cli import app

    commands = set(get_command(app).commands)  # type: ignore[attr-defined]
    unit = (ROOT / "deploy" / "phdstream.service").read_text()
    assert set(re.findall(r"bin/phdstream (\w+)", unit)) == {"doctor", "serve"} & commands
    assert '"serve"' in (ROOT / "deploy" / "Containerfile").read_text()
    for page in ("service.md", "runbook.md"):
        used = set(re.findall(r"`?phdstream (\w+) stream\.toml", (ROOT / "docs" / page).read_text()))
        assert used <= commands
