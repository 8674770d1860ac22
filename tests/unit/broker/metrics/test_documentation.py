from pathlib import Path

from broker.metrics.asked_names import ASKED, WHY_NOT
from broker.metrics.lines import Lines
from tests.support.metric_families import all_kinds, page


def test_docs_metrics_md_is_up_to_date() -> None:
    path = Path(__file__).parents[4] / "docs" / "metrics.md"
    assert path.read_text() == page(), "run scripts/generate-metrics-docs"


def test_every_family_is_explained_and_has_a_name_of_its_own() -> None:
    families = all_kinds()
    names = [family.name for family in families]
    assert len(set(names)) == len(names)
    for family in families:
        assert family.documentation, family.name
        assert isinstance(family, Lines) or family.samples, family.name


def test_every_reason_is_needed() -> None:
    text = page()
    assert all(why in text for _, why in WHY_NOT)
    assert all(len(set(names)) == len(names) for names in ASKED.values())
