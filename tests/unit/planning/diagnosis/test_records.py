"""Findings about the records of topics."""

from __future__ import annotations

from lakesplice.planning.diagnosis.finding import Finding, Verdict
from lakesplice.planning.diagnosis.records import RecordFacts, judge_records

NULLS = "value.converter.replace.null.with.default: NULL arrives as DEFAULT; set it to false"


def judged(*facts: RecordFacts, unread: tuple[str, ...] = ()) -> list[Finding]:
    return list(judge_records(facts, unread))


def good(topic: str = "a.b.c", changes: int = 5) -> RecordFacts:
    return RecordFacts(topic, 40, "debezium-json", changes)


def test_no_topics_have_no_findings() -> None:
    assert not judged()


def test_formats_are_counted() -> None:
    found = judged(good(), good("a.b.d"), RecordFacts("m.b.e", 3, "maxwell-json", 1))
    assert [one.verdict for one in found] == [Verdict.OK, Verdict.OK]
    assert found[0].seen == "debezium-json in 2 topics, maxwell-json in 1 topic"
    assert found[1].seen == "11 changes show no setting that alters values"


def test_records_of_no_known_format_are_a_problem_reported_once() -> None:
    strange = RecordFacts("a.b.c", 5, None, dead={"not-json": 5})
    found = [one for one in judged(strange) if one.verdict is Verdict.PROBLEM]
    assert [one.check for one in found] == ["format"]


def test_a_topic_without_records_may_be_right() -> None:
    (found,) = judged(RecordFacts("a.b.c", 0))
    assert (found.check, found.verdict) == ("no records", Verdict.WARNING)


def test_each_reason_to_park_is_reported_once() -> None:
    facts = [
        RecordFacts(f"a.b.{name}", 5, "debezium-json", 1, stop=("no-key", f"{name} lacks; add one"))
        for name in "xyz"
    ]
    (found,) = (one for one in judged(*facts, good()) if one.check == "would park")
    assert found.verdict is Verdict.PROBLEM
    assert found.seen == "a.b.x (and so a.b.y, a.b.z): x lacks"
    assert found.remedy == 'add one; see "no-key" in docs/operations.md'


def test_records_that_cannot_be_decoded_are_counted_by_reason() -> None:
    facts = [
        RecordFacts(name, 5, "debezium-json", 1, dead={"wrong-type": 2}) for name in ("a.b", "a.c")
    ]
    (found,) = (one for one in judged(*facts) if one.check == "can't be decoded")
    assert found.verdict is Verdict.PROBLEM
    assert found.seen == "a.b, a.c: 4 records (wrong-type)"


def test_settings_that_records_show_are_named_with_what_to_do() -> None:
    facts = [
        RecordFacts(name, 5, "debezium-json", 1, suspects=frozenset((NULLS,)))
        for name in ("a.b", "a.c")
    ]
    found = {one.check: one for one in judged(*facts)}
    one = found["value.converter.replace.null.with.default"]
    assert one.verdict is Verdict.PROBLEM
    assert one.seen == "a.b, a.c: NULL arrives as DEFAULT"
    assert one.remedy == "set it to false"
    assert "values" not in found


def test_a_fault_that_no_setting_mends_is_a_warning() -> None:
    cascades = frozenset(("foreign-key-cascades: rows change without an event",))
    facts = RecordFacts("a.b", 5, "debezium-json", 1, suspects=cascades)
    (found,) = (one for one in judged(facts) if one.check == "foreign-key-cascades")
    assert found.verdict is Verdict.WARNING
    assert found.remedy


def test_snapshots_show_nothing_of_values() -> None:
    (found,) = (one for one in judged(good(changes=0)) if one.check == "values")
    assert found.verdict is Verdict.UNKNOWN


def test_topics_that_there_was_no_time_for_are_named() -> None:
    (found,) = (one for one in judged(unread=("a.b.c",)) if one.check == "not looked at")
    assert found.verdict is Verdict.UNKNOWN
    assert "--timeout" in found.remedy
