"""The documents name only things that exist, and all of them."""

from __future__ import annotations

import re

import pytest

import documentation
from lakesplice.formats.events.decode import EVENT_FORMATS
from lakesplice.formats.events.values.refusals import DeadReason
from lakesplice.model.driver_status import TopicState
from lakesplice.model.parking import ParkCode
from tests.support.machine import ROOT

DOCS = ROOT / "docs"
HOUSE = ROOT / "service" / "lakesplice"
# Commands that are named after what they do to a table.
_WHAT_COMMANDS_DO = ("pin", "purge", "vacuum", "restore", "reset", "unpark")
# What decisions name of other libraries.
_CLASSES_OF_OTHERS = {"AdminClient", "DictionaryArray", "UploadPartCopy"}
# `_warn` takes a key before the event.
_LOGGED = re.compile(
    r'(?:log\.(?:warning|error|exception)\(|_warn\((?:f?"[^"]*"|[\w.]+),)\s*"([a-z-]+)"'
)
LINK = re.compile(r"\]\(([^)#:]+)(?:#[^)]*)?\)")


def test_every_park_code_has_a_section() -> None:
    text = (DOCS / "operations.md").read_text()
    assert set(re.findall(r"^### `([a-z-]+)`$", text, re.MULTILINE)) == set(ParkCode)


def test_every_reason_of_a_dead_letter_is_explained() -> None:
    text = (DOCS / "operations.md").read_text()
    assert not [reason for reason in DeadReason if f"`{reason}`" not in text]


def test_every_format_has_a_row_of_what_it_can_know() -> None:
    text = (DOCS / "formats.md").read_text()
    for format_ in EVENT_FORMATS.values():
        knows = format_.knows
        facts = (
            knows.position,
            knows.before,
            knows.changed,
            knows.key,
            knows.types,
            knows.lacking,
        )
        assert f"| `{format_.name}` | {' | '.join(facts)} |" in text
        assert text.count(f"| `{format_.name}` |") == 2, "what it knows, and where it was tried"


def test_operations_name_only_metrics_that_there_are() -> None:
    known = set(re.findall(r"^## `(lakesplice_\w+)`", (DOCS / "metrics.md").read_text(), re.M))
    named = set(re.findall(r"\blakesplice_[a-z_]+\b", (DOCS / "operations.md").read_text()))
    assert named <= known
    decisions = "".join(path.read_text() for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert (
        set(re.findall(r"\blakesplice_[a-z_]+\b", decisions))
        - {
            "lakesplice_change",
            "lakesplice_dead_letter",
        }
        <= known
    )


def test_operations_explain_each_warning_that_the_service_logs() -> None:
    text = (DOCS / "operations.md").read_text()
    logged = {
        event
        for path in (HOUSE / "apps" / "service").rglob("*.py")
        for event in _LOGGED.findall(path.read_text())
    }
    assert {"table-parked", "schema-topic-missing"} <= logged
    assert not [event for event in sorted(logged) if f"`{event}`" not in text]


def test_the_table_that_leads_into_the_code_names_what_there_is() -> None:
    section = (ROOT / "ARCHITECTURE.md").read_text().partition("## Where is")[2]
    rows = section.partition("\n## ")[0].splitlines()[4:]
    assert len(rows) > 10
    for row in filter(None, rows):
        module = HOUSE
        for name in re.findall(r"`([\w/.]+)`", row):
            if not name.endswith(".py"):
                assert re.search(rf"\b{name}\b", row_modules(row)), name
                continue
            module = HOUSE / name if "/" in name else module.parent / name
            assert module.is_file(), name


def test_decisions_name_modules_and_classes_that_exist() -> None:
    files = [
        path for folder in (HOUSE, ROOT / "tests", ROOT / "tools") for path in folder.rglob("*.py")
    ]
    paths = [f"/{path.relative_to(ROOT)}" for path in files]
    code = "".join(path.read_text() for path in files if HOUSE in path.parents)
    unknown = []
    for page in (DOCS / "decisions").glob("[0-9]*.md"):
        text = page.read_text()
        named = re.findall(r"`([\w/]+\.py)`", text)
        unknown += [
            (page.name, name) for name in named if not any(p.endswith(f"/{name}") for p in paths)
        ]
        classes = set(re.findall(r"`([A-Z][a-z]+[A-Z]\w+)(?:\.\w+)?`", text)) - _CLASSES_OF_OTHERS
        unknown += [(page.name, name) for name in classes if f" {name}" not in code]
    assert not unknown


def test_terms_that_are_shown_as_such_are_in_the_glossary() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    terms = {term for row in rows for term in row.split(", ")}
    stressed = re.compile(r"(?<![*\w])\*([a-z][a-z -]+)\*(?![*\w])")
    pages = [
        ROOT / "ARCHITECTURE.md",
        ROOT / "README.md",
        DOCS / "reading.md",
        DOCS / "tutorial.md",
    ]
    shown = {term for page in pages for term in stressed.findall(page.read_text())}
    assert {"deltas", "splice", "real-time view"} <= shown
    shown |= {state.value for state in TopicState} | set(_WHAT_COMMANDS_DO)
    assert not {term for term in shown if not {term, term.removesuffix("s")} & terms}


def test_no_term_is_explained_twice() -> None:
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text(), re.MULTILINE)
    terms = [row for row in rows if row not in ("word", "---")]
    assert len(terms) == len(set(terms))


def row_modules(row: str) -> str:
    """The text of the modules that a row names by their whole path."""
    paths = re.findall(r"`([\w/]+/\w+\.py)`", row)
    return "".join((HOUSE / path).read_text() for path in paths)


def test_decisions_are_numbered_without_a_gap() -> None:
    numbers = sorted(int(path.name[:4]) for path in (DOCS / "decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_every_link_leads_to_a_file() -> None:
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    broken = [
        (page.name, target)
        for page in pages
        for target in LINK.findall(page.read_text())
        if not (page.parent / target).exists()
    ]
    assert not broken


def test_the_list_of_decisions_names_each() -> None:
    listed = (DOCS / "decisions" / "README.md").read_text()
    for path in (DOCS / "decisions").glob("[0-9]*.md"):
        assert f"[{path.name[:4]}]({path.name})" in listed


@pytest.mark.nightly
def test_the_site_refuses_links_and_anchors_that_lead_nowhere() -> None:
    documentation.stage()
    with (documentation.PAGES / "docs" / "limits.md").open("a") as page:
        page.write("\n[a page](nowhere.md) and [an anchor](metrics.md#nowhere)\n")
    wrong = documentation.build()
    assert "nowhere.md" in wrong
    assert "#nowhere" in wrong
