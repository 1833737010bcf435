"""docs/spark.md as it is written: its configurations are loaded, and every key of the section is documented."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from phdstream.app.config import load_config
from phdstream.engines.settings import KNOWN

DOCS = Path(__file__).parents[2] / "docs"
BLOCKS = re.findall(r"```toml\n(.*?)```", (DOCS / "spark.md").read_text(), re.DOTALL)


@pytest.mark.parametrize("block", BLOCKS, ids=["files", "topic"])
def test_every_configuration_is_loaded(tmp_path: Path, block: str) -> None:
    (tmp_path / "stream.toml").write_text(block)
    engine = load_config(tmp_path / "stream.toml").engine
    assert engine is not None
    assert engine.storage == "hdfs://name-node/private/rides"


def test_every_key_is_documented() -> None:
    table = (DOCS / "configuration.md").read_text()
    section = table[table.index("| `[engine]`") : table.index("| `[account]`")]
    assert {name for name in KNOWN if f"`{name}`" not in section} == set()
