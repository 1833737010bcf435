"""Addresses: what they name, and what is refused in them without being quoted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from phdstream.errors import ConfigError
from phdstream.io.sources.addresses import Address, is_address, local_path

ADDRESSES = {
    "s3://b/a.csv": ("s3://b/a.csv", "s3://b"),
    "S3://b/a b%20#?.csv": ("s3://b/a b%20#?.csv", "s3://b"),
    "s3://b/a.csv?region=x&endpoint_override=http://h:1": (
        "s3://b/a.csv", "s3://b?region=x&endpoint_override=http://h:1",
    ),
    "s3://b/day=?/200?/hour=1/a.csv": ("s3://b/day=?/200?/hour=1/a.csv", "s3://b"),
    "gcs://b/a?.csv?scheme=http": ("gs://b/a?.csv", "gs://b?retry_limit_seconds=30&scheme=http"),
    "gs://anonymous@b/a.csv?retry_limit_seconds=2": ("gs://b/a.csv", "gs://anonymous@b?retry_limit_seconds=2"),
    "abfs://c@account.dfs.core.windows.net/d/a.csv": (
        "abfss://c@account.dfs.core.windows.net/d/a.csv", "abfss://c@account.dfs.core.windows.net",
    ),
    "hdfs://host:8020/d/a.csv?user=x": ("hdfs://host:8020/d/a.csv", "hdfs://host:8020/?user=x"),
}  # fmt: skip


@pytest.mark.parametrize("text", ADDRESSES)
def test_the_name_is_without_settings_and_the_rest_is_for_arrow(text: str) -> None:
    found = Address.parse(text)
    assert (found.name, found.store) == ADDRESSES[text]


@pytest.mark.parametrize(
    "text",
    [
        "s3://AKIA:SECRET@b/a.csv",
        "s3://SECRET@b/a.csv",
        "gs://SECRET@b/a.csv",
        "hdfs://user:SECRET@host/a.csv",
        "abfss://c:SECRET@account.dfs.core.windows.net/a.csv",
        "abfss://c@a.dfs.core.windows.net/a.csv?client_secret=SECRET",
        "abfss://c@a.dfs.core.windows.net/a.csv?sv=1&sig=SECRET",
        "s3://b/a.csv?endpoint_override=http://me:SECRET@h",
        "s3://b/a.csv?secret_key=SECRET&region=x",
        "https://user:SECRET@b/a.csv",
        "s3://b/a.csv?X-Amz-Credential=me&X-Amz-Signature=SECRET",
        "s3://b/a.csv?region=x&SECRET",
        "s3://?region=SECRET",
        "s3://b/a\0.csvSECRET",
    ],
)
def test_credentials_and_what_is_not_known_are_refused_unquoted(text: str) -> None:
    assert is_address(text)
    with pytest.raises(ConfigError) as refused:
        Address.parse(text)
    assert "SECRET" not in str(refused.value)
    assert str(refused.value).startswith("[input] files")


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("s3a://b/a.csv", "write s3:// instead"),
        ("http://b/a.csv", "no files are read from http://"),
        ("s3://b", "needs a bucket and an object's key"),
        ("s3:///a.csv", "needs a bucket"),
        ("file:///a.csv?region=x", "known here: none"),
        ("s3://b/a.csv?regoin=x", "has a setting 'regoin'; known here: region"),
    ],
)
def test_mistakes_are_named(text: str, says: str) -> None:
    with pytest.raises(ConfigError, match=says.replace("?", r"\?")):
        Address.parse(text)


def test_files_by_address() -> None:
    assert local_path("file:///data/2026-0?.csv") == "/data/2026-0?.csv"
    assert local_path("file://localhost/a") == "/a"
    with pytest.raises(ConfigError, match="three slashes"):
        local_path("file://data/a.csv")


@given(st.text())
def test_any_text_is_an_address_a_path_or_refused(text: str) -> None:
    try:
        path = local_path(text)
    except ConfigError:
        return
    if path is None:
        assert Address.parse(text).name.startswith(tuple("sgahv"))
    else:
        assert path == text or text.lower().startswith("file://")
