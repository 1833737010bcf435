"""Objects of a store are found as files are, and read as files are; every format, every fault."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from phdstream.errors import InputError, StateError
from phdstream.io.sources import objects
from phdstream.io.sources.fetching import at_hand
from phdstream.io.sources.inventory import Print, find_files, fingerprints, refuse_twice
from tests.io.sources.stores import Store, running_store, use_credentials
from tests.io.sources.test_formats import COLUMNS, FLAT, GEO, check_same, events, frame, geoframe


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    yield from running_store(tmp_path_factory.mktemp("store"))


@pytest.fixture
def store(running: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    use_credentials(monkeypatch)
    running.fresh()
    return running


def names(*patterns: str) -> list[str]:
    return [one.name for one in find_files(patterns, Path()) if isinstance(one, objects.StoredObject)]


class Copies:
    """Where copies go, and what was seen of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @contextmanager
    def new(self, ending: str) -> Iterator[tuple[IO[bytes], Path]]:
        path = self.folder / f"copy-{ending}"
        try:
            with path.open("xb") as file:
                yield file, path
        finally:
            path.unlink()


KEYS = ("a.csv", "b.csv", "sub/c.csv", "sub/deep/d.csv", ".hidden.csv", ".sub/e.csv", "sub/.f.csv", "g[1].csv", "x.txt")
PATTERNS = ("*.csv", "?.csv", "[ac].csv", "**", "**/*.csv", "sub/*", "*/*.csv", ".*", "*/**/d.csv", "sub/**")


class TestFinding:
    @pytest.mark.parametrize("pattern", PATTERNS)
    def test_patterns_name_what_they_name_among_files(self, store: Store, tmp_path: Path, pattern: str) -> None:
        for key in KEYS:
            store.put(f"in/{key}", b"x")
            (tmp_path / "in" / key).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "in" / key).write_text("x")
        files = find_files([f"in/{pattern}"], tmp_path)
        wanted = sorted(path.relative_to(tmp_path).as_posix() for path in files if isinstance(path, Path))
        assert names(store.address(f"in/{pattern}")) == [f"s3://{store.bucket}/{key}" for key in wanted]

    def test_keys_are_as_they_are(self, store: Store) -> None:
        for key in ("a b.csv", "a%20b.csv", "ä#1.csv", "x=1/y.csv"):
            name = store.put(key, b"time,lon,lat\n")
            assert names(store.address(key)) == [name]
            (one,) = fingerprints(find_files([store.address(key)], Path()))
            assert (one.name, one.size) == (name, 13)

    def test_at_the_top_of_a_bucket_and_in_a_list(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "f.csv").write_text("x")
        first, second = store.put("a.csv", b"x"), store.put("b.csv", b"x")
        found = find_files([store.address("*.csv"), "f.csv", f"file://{tmp_path}/f.csv"], tmp_path)
        assert [str(getattr(one, "name", "")) for one in found[:2]] == [first, second]
        assert found[2:] == [tmp_path / "f.csv"] * 2

    def test_an_object_named_twice(self, store: Store) -> None:
        store.put("a.csv", b"x")
        with pytest.raises(InputError, match=r"s3://bucket\d+/a.csv is named twice: it is the same object"):
            refuse_twice(fingerprints(find_files([store.address("a.csv"), store.address("*.csv")], Path())))

    def test_a_known_object_is_known_by_size_time_and_version(self, store: Store) -> None:
        store.put("a.csv", b"first")
        found = find_files([store.address("a.csv")], Path())
        (one,) = fingerprints(found)
        known = Print(one.name, one.size, one.changed, "digest", one.version)
        assert one.digest == ""
        assert one.version
        assert fingerprints(found, [known]) == [known]
        store.put("a.csv", b"other")  # of the same size, likely within the same second
        assert fingerprints(found, [known])[0].digest == ""
        assert store.fetched() == []


@contextmanager
def fetched(address: str, folder: Path, before: Print | None = None) -> Iterator[tuple[Path, Print]]:
    found = find_files([address], Path())
    (one,) = fingerprints(found)
    with at_hand(found[0], one, before, Copies(folder).new, []) as there:
        yield there
    assert list(folder.iterdir()) == []


class TestReading:
    @pytest.mark.parametrize("name", [*FLAT, *GEO])
    def test_every_format(self, store: Store, tmp_path: Path, name: str) -> None:
        (tmp_path / "in").mkdir()
        (tmp_path / "copies").mkdir()
        if name in FLAT:
            FLAT[name](frame(), tmp_path / "in" / name)
        else:
            GEO[name](geoframe(), tmp_path / "in" / name)
        for path in (tmp_path / "in").iterdir():
            store.put(f"in/{path.name}", path)
        with fetched(store.address(f"in/{name}"), tmp_path / "copies") as (path, one):
            check_same(path)
        assert len(one.digest) == 64

    def test_in_pieces(self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        content = bytes(range(256)) * 50
        store.put("a.csv", content)
        monkeypatch.setattr(objects, "_AT_ONCE", 1000)
        with fetched(store.address("a.csv"), tmp_path) as (path, _):
            assert path.read_bytes() == content
        assert len(store.fetched()) == 13

    @pytest.mark.parametrize("at", [999, 1000, 1001, 2500])
    def test_what_has_grown_at_its_end_is_told(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: int
    ) -> None:
        monkeypatch.setattr(objects, "_AT_ONCE", 500)
        content = b"x" * (at - 1) + b"\n" + b"more\n"
        for before, grown in ((content[:at], True), (b"y" + content[1:at], False), (content[: at - 1], False)):
            store.put("a.csv", before)
            with fetched(store.address("a.csv"), tmp_path) as (_, old):
                pass
            store.put("a.csv", content)
            with fetched(store.address("a.csv"), tmp_path, old) as (_, new):
                assert (new.continues == old.digest) is grown

    def test_overwritten_while_it_is_read(self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """By one of the same size, between two pieces: what was read is of both, and is not used."""
        monkeypatch.setattr(objects, "_AT_ONCE", 1000)
        store.put("a.csv", b"a" * 3000)

        def overwrite(request: tuple[str, str]) -> None:
            if len(store.fetched()) == 2:
                store.put("a.csv", b"b" * 3000)

        store.before = overwrite
        with (
            pytest.raises(InputError, match=r"s3://bucket\d+/a.csv changed while it was read.*Nothing was spent"),
            fetched(store.address("a.csv"), tmp_path),
        ):
            raise AssertionError("what was read of two objects was used")

    @pytest.mark.parametrize("content", [b"a" * 1500, b"a" * 4500])
    def test_replaced_by_a_shorter_or_longer_one(
        self, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
    ) -> None:
        monkeypatch.setattr(objects, "_AT_ONCE", 1000)
        store.put("a.csv", b"a" * 3000)
        store.before = lambda request: store.put("a.csv", content) and None if len(store.fetched()) == 2 else None
        with pytest.raises(InputError, match=r"Nothing was spent"), fetched(store.address("a.csv"), tmp_path):
            raise AssertionError

    def test_a_part_of_a_shapefile_is_overwritten(self, store: Store, tmp_path: Path) -> None:
        (tmp_path / "in").mkdir()
        GEO["a.shp"](geoframe(), tmp_path / "in" / "a.shp")
        for path in (tmp_path / "in").iterdir():
            store.put(path.name, path)
        found = find_files([store.address("a.shp")], Path())
        (one,) = fingerprints(found)
        known = Print(one.name, one.size, one.changed, "digest", one.version)
        assert fingerprints(found, [known]) == [known]
        store.put("a.dbf", (tmp_path / "in" / "a.dbf").read_bytes().replace(b"u1", b"u2"))
        assert fingerprints(found, [known]) != [known]

    def test_messages_and_notes_call_it_by_its_name(self, store: Store, tmp_path: Path) -> None:
        store.put("a.csv", b"time;lon;lat;sign;who\n2024-03-01;1;41;1;u\nx;1;41;1;u\n")
        store.put("b.parquet", b"PAR1 and no more")
        for key, says in (("a.csv", "row 2"), ("b.parquet", "not a whole Parquet file")):
            with pytest.raises(InputError, match=says) as wrong, fetched(store.address(key), tmp_path) as (path, _):
                events(path)
            assert f"s3://{store.bucket}/{key}" in str(wrong.value)
            assert str(tmp_path) not in str(wrong.value)
            assert list(tmp_path.iterdir()) == []
        store.put("c.csv", b"time;lon;lat;sign;who\n2024-03-01;1;41;1;u\n")
        found, notes = find_files([store.address("c.csv")], Path()), ["of another file"]
        with at_hand(found[0], fingerprints(found)[0], None, Copies(tmp_path).new, notes) as (path, _):
            from phdstream.io.sources.events import read_events
            from phdstream.io.sources.reading import Reading

            list(read_events([path], COLUMNS, Reading(), notes))
        assert len(notes) == 2
        assert f"s3://{store.bucket}/c.csv" in notes[1]
        assert str(tmp_path) not in notes[1]

    def test_a_full_disk(self, store: Store) -> None:
        store.put("a.csv", b"x" * 3000)

        @contextmanager
        def full(ending: str) -> Iterator[tuple[IO[bytes], Path]]:
            with Path("/dev/full").open("wb", buffering=0) as file:
                yield file, Path("/dev/full")

        found = find_files([store.address("a.csv")], Path())
        with (
            pytest.raises(StateError, match=r"no room in the state folder for a copy of s3://.*Nothing was spent"),
            at_hand(found[0], fingerprints(found)[0], None, full, []),
        ):
            raise AssertionError


class TestFaults:
    @pytest.mark.parametrize(
        ("key", "says"),
        [
            ("nothing.csv", "there is no object s3://bucket"),
            ("none/*.csv", "no object matches s3://bucket"),
            ("a.docx", "s3://bucket.*is of a format that is not known"),
            ("a//b.csv", "cannot be read from its store|not there|no object"),
        ],
    )
    def test_what_is_not_there(self, store: Store, key: str, says: str) -> None:
        store.put("a.docx", b"x")
        with pytest.raises(InputError, match=says):
            fingerprints(find_files([store.address(key)], Path()))

    def test_no_such_bucket(self, store: Store) -> None:
        with pytest.raises(
            InputError, match=r"s3://nobody/.*: there is no such bucket at this store. Nothing was spent"
        ):
            find_files([store.address("*.csv", bucket="nobody")], Path())

    @pytest.mark.parametrize("what", ["HEAD", "GET"])
    @pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "SignatureDoesNotMatch", "ExpiredToken"])
    def test_what_may_not_be_read(self, store: Store, tmp_path: Path, what: str, code: str) -> None:
        store.put("a.csv", b"x" * 1000)
        store.before = lambda request: code if request[0] == what else None
        for key in ("a.csv", "*.csv"):
            with (
                pytest.raises(InputError, match="may not be read, or listed, with the credentials") as refused,
                fetched(store.address(key), tmp_path),
            ):
                raise AssertionError
            assert "AKIA" not in str(refused.value)
            assert list(tmp_path.iterdir()) == []

    def test_a_store_that_is_down(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        use_credentials(monkeypatch)
        address = "s3://b/a.csv?endpoint_override=127.0.0.1:9&scheme=http&region=us-east-1"
        with pytest.raises(InputError, match=r"s3://b/a.csv: its store cannot be reached"):
            fingerprints(find_files([address], Path()))

    def test_a_store_of_google_that_is_down(self) -> None:
        address = "gs://anonymous@b/a.csv?endpoint_override=127.0.0.1:9&scheme=http&retry_limit_seconds=1"
        with pytest.raises(InputError, match=r"gs://b/a.csv: its store cannot be reached"):
            fingerprints(find_files([address], Path()))

    def test_what_arrow_cannot_do_here(self) -> None:
        with pytest.raises(InputError, match=r"^hdfs://127.0.0.1:9/a.csv: "):
            fingerprints(find_files(["hdfs://127.0.0.1:9/a.csv"], Path()))


def test_a_private_file_is_its_owners_and_follows_no_link(tmp_path: Path) -> None:
    from phdstream.streams.durable.locked_folder import LockedFolder

    folder = LockedFolder(tmp_path / "f", private=True)
    (tmp_path / "other").write_text("as it was")
    (tmp_path / "f" / "link").symlink_to(tmp_path / "other")
    with pytest.raises(FileExistsError):
        folder.new_file("link")
    with folder.new_file("new") as file:
        file.write(b"x")
    assert stat.S_IMODE((tmp_path / "f" / "new").stat().st_mode) == 0o600
    assert (tmp_path / "other").read_text() == "as it was"
    folder.close()
