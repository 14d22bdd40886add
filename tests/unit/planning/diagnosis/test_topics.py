"""Findings about the topics that a configuration reads."""

from __future__ import annotations

from lakesplice.planning.diagnosis.finding import Finding, Verdict
from lakesplice.planning.diagnosis.topics import SelectionFacts, judge_selection

READ = {"shop.shop.orders": "shop.orders", "shop.shop.carts": "shop.carts"}


def judged(facts: SelectionFacts) -> dict[str, Finding]:
    return {one.check: one for one in judge_selection(facts)}


def test_topics_that_match_are_counted_and_named() -> None:
    found = judged(SelectionFacts("shop.*", READ))
    assert found.keys() == {"matched"}
    assert found["matched"].verdict is Verdict.OK
    assert found["matched"].seen == "2 topics (shop.shop.carts, shop.shop.orders)"


def test_a_pattern_that_matches_nothing_is_held_against_what_is_there() -> None:
    found = judged(SelectionFacts(r"shop\.shop\.order", others=tuple(READ)))["matched"]
    assert found.verdict is Verdict.PROBLEM
    assert "did you mean shop.shop.orders?" in found.seen
    assert "kafka.topic_pattern" in found.remedy


def test_a_broker_without_topics_may_hide_them() -> None:
    found = judged(SelectionFacts("shop.*"))["matched"]
    assert found.verdict is Verdict.PROBLEM
    assert "Describe" in found.remedy


def test_refused_topics_and_those_left_out_have_their_reasons() -> None:
    found = judged(
        SelectionFacts(
            "shop.*", READ, excluded={"shop.shop.log": "read: false"}, refused={"x": "y"}
        )
    )
    assert found["refused"].verdict is Verdict.PROBLEM
    assert found["refused"].seen == "x: y"
    assert found["left out"].verdict is Verdict.OK
    assert found["left out"].seen == "shop.shop.log: read: false"


def test_topics_of_one_table_need_a_key_that_tells_them_apart() -> None:
    both = {"a.shop.orders": "shop.orders", "b.shop.orders": "shop.orders"}
    found = judged(SelectionFacts(".*", both))["one table"]
    assert found.verdict is Verdict.PROBLEM
    assert "a.shop.orders, b.shop.orders are all for shop.orders" in found.seen
    assert "one table" not in judged(SelectionFacts(".*", both, shards=frozenset(("shop.orders",))))


def test_a_history_table_has_a_name_that_no_table_of_current_rows_has() -> None:
    def found(**histories: str) -> Finding | None:
        topics = {f"shop.shop.{name}": table for name, table in histories.items()}
        return judged(SelectionFacts("shop.*", READ, histories=topics)).get("one table")

    assert found(orders="shop.orders_history", carts="shop.carts_history") is None
    taken = found(orders="shop.carts")
    assert taken is not None
    assert "`history.to`" in taken.remedy
    shared = found(orders="shop.all", carts="shop.all")
    assert shared is not None
    assert "are all for shop.all" in shared.seen
