"""Links of the pages lead to files and headings that are there."""

import re
from pathlib import Path

import pytest

from tests.support.documentation import pages
from tests.support.installation import ROOT

_LINK = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#+ +(.+?)\s*$", re.MULTILINE)
PAGES = [*pages(), *(ROOT / name for name in ("CONTRIBUTING.md", "CHANGELOG.md"))]


def anchors(page: Path) -> set[str]:
    """The anchors that forges make of a page's headings."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return {
        re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(text)
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    for target, anchor in _LINK.findall(_CODE.sub("", page.read_text())):
        if "://" in target or target.startswith("mailto:"):
            continue
        path = (page.parent / target).resolve() if target else page
        assert path.exists(), f"{page.name} links to {target}"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page.name} links to {target}#{anchor}"


def test_every_page_is_in_the_index() -> None:
    index = (ROOT / "docs/README.md").read_text()
    listed = {(ROOT / "docs" / target).resolve() for target, _ in _LINK.findall(index)}
    missing = {page for page in pages() if page.is_relative_to(ROOT / "docs")} - listed
    assert missing == {ROOT / "docs/README.md"}
