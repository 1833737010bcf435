"""Starting up loads only what is needed, and the lazy package is the same package."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import phdstream as phd

HEAVY = {"numpy", "pyarrow", "shapely", "opendp", "pandas", "geopandas", "matplotlib"}


def loaded_by(code: str) -> set[str]:
    script = f"{code}\nimport sys; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_importing_the_package_loads_nothing_heavy() -> None:
    assert not loaded_by("import phdstream; phdstream.__version__; dir(phdstream)") & HEAVY


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['phdstream', '--help']\nfrom phdstream.app.cli import app\napp(standalone_mode=False)"
    )
    assert not loaded_by(code) & (HEAVY | {"rich"})


def test_production_noise_does_not_load_its_oracle() -> None:
    box = "phd.PHDStream(phd.Box([(0, 1)]), 1.0, phd.Event()).update([[0.5]])"
    assert "opendp" not in loaded_by(f"import phdstream as phd; {box}")


@pytest.mark.parametrize("name", phd.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert name in dir(phd)
    value = getattr(phd, name)
    assert value is getattr(phd, name)
    if isinstance(value, type):
        assert value.__name__ == name


def test_all_names_can_be_imported_at_once() -> None:
    space: dict[str, object] = {}
    exec("from phdstream import *", space)
    assert set(phd.__all__) <= set(space)


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Bax'"):
        _ = phd.Bax
    assert not hasattr(phd, "numpy")


def test_no_bar_is_drawn_where_nothing_can_be_redrawn() -> None:
    """Notebooks say FORCE_COLOR, and keep every line that a bar ever was."""
    code = "from phdstream.app.progress import one_bar\nwith one_bar('ticks') as move: move(1, 2)"
    forced = os.environ | {"FORCE_COLOR": "1", "TERM": "xterm-256color"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=forced)
    assert (done.stdout, done.stderr) == ("", "")
