"""Arrow tables that say what they may claim about privacy."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa

__all__ = ["arrow_table"]


def arrow_table(columns: dict[str, Any], metadata: dict[str, Any]) -> pa.Table:
    """Return an Arrow table that carries the release's metadata, above all what it may claim about privacy."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    return table.replace_schema_metadata(
        {"phdstream": json.dumps(metadata), "privacy": str(metadata.get("privacy", ""))}
    )
