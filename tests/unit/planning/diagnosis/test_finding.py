"""The texts of numbers, times and sizes in findings."""

from __future__ import annotations

from lakesplice.planning.diagnosis.finding import counted, first_names, size, span


def test_names_are_few_and_in_order() -> None:
    assert first_names(["b", "a"]) == "a, b"
    assert first_names("dacbe") == "a, b, c, 2 more"


def test_numbers_times_and_sizes_are_as_people_say_them() -> None:
    assert [counted(n, "topic") for n in (1, 0, 1_200)] == ["1 topic", "0 topics", "1,200 topics"]
    times = (0.25, 90, 300, 3_600, 7_200, 86_400, 7 * 86_400)
    assert [span(one) for one in times] == [
        *("0.25 s", "90 s", "5 min", "1 hour", "2 hours", "1 day", "7 days"),
    ]
    sizes = (500, 2_048, 3 << 20, 5 << 30, 3 << 40)
    assert [size(one) for one in sizes] == ["500 B", "2 KiB", "3 MiB", "5.0 GiB", "3.0 TiB"]
