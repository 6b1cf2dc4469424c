"""The documentation doesn't rot: links resolve, generated pages are fresh, and what the code says is explained."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from hack import states
from hack.cluster import CHECKOUT

PAGES = [
    CHECKOUT / name
    for name in subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=CHECKOUT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    if (CHECKOUT / name).exists()
]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.DOTALL | re.MULTILINE)
REASONS = re.compile(
    r"""(?:\breason(?::\ str)?\s*=\s*|\b_failed\(\s*(?:at,\s*)?|return\ )"([A-Z][A-Za-z]+)"[,)\n]""", re.VERBOSE
)
INTERNAL = {"Error", "StoreError", "NotFound", "AlreadyExists", "PreconditionFailed", "Conflict", "Forbidden",
            "Unavailable", "OutcomeUnknown", "WatchExpired", "Fenced", "NewerJournal", "Answered",
            "Cancelled"}  # fmt: skip


def anchors(text: str) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for target in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"https?:|mailto:", target):
            continue
        path, _, anchor = target.partition("#")
        found = (page.parent / path) if path else page
        if not found.exists() or (anchor and anchor not in anchors(found.read_text())):
            broken.append(target)
    assert broken == []


def test_the_page_of_states_is_that_of_the_table() -> None:
    assert states.PAGE.read_text() == states.page(), "run `python -m hack.states` and commit it"


def test_every_decision_has_a_number_of_its_own_and_is_listed() -> None:
    folder = CHECKOUT / "docs" / "adr"
    names = sorted(page.name for page in folder.glob("*.md") if page.name != "README.md")
    assert [name[:4] for name in names] == [f"{number:04d}" for number in range(1, len(names) + 1)]
    assert re.findall(r"\]\((.*?\.md)\)", (folder / "README.md").read_text()) == names


def test_every_reason_that_a_task_can_fail_with_is_explained() -> None:
    said = {
        reason
        for package in ("core", "agent", "worker")
        for source in (CHECKOUT / "aura_operator" / package).rglob("*.py")
        for reason in REASONS.findall(source.read_text())
    } | set(re.findall(r'^    reason = "(\w+)"', (CHECKOUT / "aura_operator" / "errors.py").read_text(), re.MULTILINE))
    assert {"Poisoned", "ModelRateLimited", "AgentNotFound"} <= said, "the search still finds them"
    explained = (CHECKOUT / "docs" / "troubleshooting.md").read_text()
    assert sorted(reason for reason in said - INTERNAL if f"`{reason}`" not in explained) == []


def test_behaviours_that_are_called_shown_have_tests() -> None:
    text = (CHECKOUT / "docs" / "behaviours.md").read_text()
    rows = re.findall(r"^\| (\d+) \| .* \| (yes|part|not yet)[^|]*\|$", text, re.MULTILINE)
    assert [int(number) for number, _ in rows] == list(range(1, 49))
    marks = [
        mark
        for source in (CHECKOUT / "tests").rglob("*.py")
        for mark in re.findall(r"behaviour\(([\d, ]+)\)", source.read_text())
    ]
    marked = {int(number) for mark in marks for number in mark.split(",")}
    assert [number for number, shown in rows if shown != "not yet" and int(number) not in marked] == []
