"""docs/privacy: every trusted function says what it needs, who checks that and what it gives; pages and links hold."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.guards.sources import Sources, functions, planted, sources, tree_of

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "privacy"
CONTRACTS = (PAGES / "contracts.md").read_text(encoding="utf-8")
BESIDE = ["streams/paper/selective_counting.py"]
"""Trusted besides those that the front page lists: a tool of its own."""
FRONT_DOOR = ["privacy/units.py", "privacy/bounding.py", "privacy/user_ids.py", "streams/intake.py"]
NOT_BY_FUNCTION = ["streams/paper/counters/__init__.py"]
Row = tuple[str, str, str, str]


def listed() -> list[str]:
    """Return the files that the front page says must be trusted for the noisy counts, and for the unit."""
    text = (PAGES / "README.md").read_text(encoding="utf-8").split("## What must be trusted")[1].split("\n## ")[0]
    default, rest = text.split("Besides these:")
    paper = rest.split("For the paper's method")[1]
    found = re.findall(r"\| `([a-z_/]+\.py)`", default + paper)
    counters = [
        str(path.relative_to(ROOT / "src/phdstream"))
        for path in (ROOT / "src/phdstream/streams/paper/counters").glob("*.py")
    ]
    return sorted({*found, *counters, *FRONT_DOOR, *BESIDE} - {*NOT_BY_FUNCTION})


def rows(text: str = CONTRACTS) -> dict[str, list[Row]]:
    """Return the lines of contracts.md by file."""
    found: dict[str, list[Row]] = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE)[1:]:
        file = re.match(r"`([a-z_/]+\.py)`", section)
        assert file, section[:40]
        cells = [
            [cell.strip() for cell in line.strip("|").split(" | ")]
            for line in section.splitlines()
            if line.startswith("| `")
        ]
        assert all(len(line) == 4 for line in cells), file[1]
        found[file[1]] = [(line[0], line[1], line[2], line[3]) for line in cells]
    return found


def public_functions(file: str, text: Sources) -> set[str]:
    """Return the public functions and methods of a file, with constructors."""
    module = "phdstream." + file.removesuffix(".py").replace("/", ".")
    names = [name for name, _, _ in functions(tree_of(text[module]))]
    return {name for name in names if not any(_hidden(part) for part in name.split("."))}


def _hidden(name: str) -> bool:
    return name.startswith("_") and name != "__init__"


def without_contract(text: Sources) -> list[str]:
    """Return the trusted functions that have no line."""
    have = rows()
    return [
        f"{file}: {name}"
        for file in listed()
        for name in sorted(public_functions(file, text) - named(have.get(file, [])))
    ]


def named(lines: list[Row]) -> set[str]:
    return {name for line in lines for name in re.findall(r"`([\w.]+)`", line[0])}


def test_the_front_page_lists_what_must_be_trusted() -> None:
    assert {"privacy/laplace.py", "streams/tracking/mechanism/mechanism.py", "streams/paper/mechanism.py"} <= set(
        listed()
    )
    assert len(listed()) >= 25


def test_every_trusted_function_has_its_contract() -> None:
    assert without_contract(sources()) == []


def test_a_new_function_without_one_would_be_seen() -> None:
    module = "phdstream.streams.tracking.mechanism.mechanism"
    old = "    def end_start(self) -> None:"
    changed = planted(module, old, f"    def peek(self) -> int:\n        return 0\n\n{old}")
    assert without_contract(changed) == ["streams/tracking/mechanism/mechanism.py: Mechanism.peek"]


def test_no_contract_is_of_a_function_that_is_not_there() -> None:
    assert set(rows()) == set(listed())
    assert [
        f"{file}: {name}" for file, lines in rows().items() for name in named(lines) - public_functions(file, sources())
    ] == []


def test_who_checks_exists() -> None:
    """A checker is a function, class, test or guard that there is; whoever checks nothing says so, and why."""
    known = {"types", "floats"} | {path.stem for path in (ROOT / "tests").rglob("*.py")}
    for path in [*(ROOT / "src").rglob("*.py"), *(ROOT / "tests").rglob("*.py")]:
        for node in ast.walk(tree_of(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                known.add(node.name)
    for file, lines in rows().items():
        for functions_named, needs, checker, gives in lines:
            assert needs, (file, functions_named)
            assert gives, (file, functions_named)
            if needs != "-":
                said = re.findall(r"`([^`]+)`", checker)
                assert said or checker == "types" or "nobody" in checker, (file, functions_named, checker)
                for each in said:
                    ends = (ROOT / each).exists() if "/" in each else each.split(".")[-1] in known
                    assert ends, (file, functions_named, each)
            assert not re.search(r"nobody(?! for|: |;|,)", checker), "what takes the place of a check, is said"


@pytest.mark.parametrize(
    "section", re.split(r"^## ", CONTRACTS, flags=re.MULTILINE)[1:], ids=lambda text: text.split("`")[1]
)
def test_every_file_names_a_proof_and_tests_that_there_are(section: str) -> None:
    said = section.splitlines()[1]
    proofs, tests = re.findall(r"\]\((\S+\.md)\)", said), re.findall(r"`(tests/[\w/.]+)`", said)
    assert proofs, said
    assert tests, said
    assert all((PAGES / page).exists() for page in proofs), said
    assert all((ROOT / test).exists() for test in tests), said


MECHANISMS = [
    "noise", "divisible-noise", "counters", "selective-counting", "tree-selection", "phdstream", "tracking", "windows",
    "contribution-bounding", "release",
]  # fmt: skip


@pytest.mark.parametrize("page", MECHANISMS)
def test_every_mechanism_has_its_page(page: str) -> None:
    """Statement, proof, what it assumes, and code and tests that there are."""
    text = (PAGES / f"{page}.md").read_text(encoding="utf-8")
    for heading in ("## Statement", "## Proof", "## Assumes", "## Code and tests"):
        assert heading in text, heading
    evidence = text.split("## Code and tests")[1]
    paths = re.findall(r"`((?:tests/)?[\w/]+(?:\.py|/))`", evidence)
    assert any(path.startswith("tests/") for path in paths)
    assert any(not path.startswith("tests/") for path in paths)
    for path in paths:
        assert (ROOT / path).exists() or (ROOT / "src/phdstream" / path).exists(), path


def links(page: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    elsewhere = ("http", "mailto", "#", "gallery/")  # the site's build makes the gallery, and checks links to it
    return [link for link in re.findall(r"\]\(([^)\s]+)\)", text) if not link.startswith(elsewhere)]


@pytest.mark.parametrize(
    "page", [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")], ids=lambda path: str(path.relative_to(ROOT))
)
def test_links_lead_somewhere(page: Path) -> None:
    for link in links(page):
        assert (page.parent / link.split("#")[0]).exists(), link


def test_known_limits_name_versions_and_are_linked_from_where_people_look() -> None:
    text = (PAGES / "known-limits.md").read_text(encoding="utf-8")
    limits = [line.strip("| ").split(" | ") for line in text.splitlines() if re.match(r"\| [LM]\d+ \|", line)]
    assert [each[0] for each in limits] == [f"L{n}" for n in range(1, 17)] + [f"M{n}" for n in range(1, 10)]
    for number, _, _, affects, *_ in limits:
        assert re.search(r"0\.\d+\.\d+|commit [0-9a-f]{7}|^all$|before \d{4}-\d\d-\d\d", affects), number
    name = "known-limits.md"
    for place in (
        "SECURITY.md",
        "docs/privacy/README.md",
        "src/phdstream/app/card.py",
        "src/phdstream/page/texts.en.json",
        "src/phdstream/audit/report.py",
        "docs/audit.md",
    ):
        assert name in (ROOT / place).read_text(encoding="utf-8"), place
    assert "limit_known" in (ROOT / "src/phdstream/page/js/promise.js").read_text(encoding="utf-8")
