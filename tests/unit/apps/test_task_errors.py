"""Errors of tasks are judged by their classes: a new subclass is treated as its parent."""

from __future__ import annotations

import pickle

import pytest

from lakesplice import errors
from lakesplice.apps.service.batching.job import error_line
from lakesplice.errors import CorruptFileError, LakespliceError, MissingFileError, RetryableError
from lakesplice.spark.jobs.batch_plan import TaskError

TREE = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, LakespliceError)
]


@pytest.mark.parametrize("parent", TREE, ids=lambda kind: kind.__name__)
def test_a_subclass_that_the_driver_lacks_is_judged_as_its_parent(
    parent: type[LakespliceError],
) -> None:
    # A class made within a function can't be pickled: it stands for one of another module.
    subclass = type("BucketIsAway", (parent,), {})
    sent = pickle.loads(pickle.dumps(TaskError.of(subclass("no answer", bucket="b"))))
    assert sent.kind == "BucketIsAway"
    for category in TREE:
        assert sent.is_a(category) == issubclass(parent, category)


def test_an_error_of_another_library_has_no_category() -> None:
    sent = pickle.loads(pickle.dumps(TaskError.of(ValueError("no number"))))
    assert not any(sent.is_a(category) for category in TREE)


def test_a_missing_file_counts_as_damage_and_is_not_retried() -> None:
    assert TaskError.of(MissingFileError("gone")).is_a(CorruptFileError)
    assert not TaskError.of(MissingFileError("gone")).is_a(RetryableError)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "\n  An exception was thrown.\nTraceback:\n  f()\nKeyError: 'a'\n\n SQLSTATE",
            "KeyError: 'a'",
        ),
        ("\n\nJob aborted\nmore", "Job aborted"),
        ("", "RuntimeError('')"),
    ],
)
def test_why_a_job_died_is_never_an_empty_line(text: str, line: str) -> None:
    assert error_line(RuntimeError(text)) == line
