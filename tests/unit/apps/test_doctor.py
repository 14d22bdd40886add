"""`lakesplice doctor` if nothing works: each check has a time limit, and none hides another."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from lakesplice.apps.doctor import Access, examine, machine
from lakesplice.apps.doctor.lake import LakeExamination
from lakesplice.apps.doctor.step_runner import Step, StepRunner
from lakesplice.errors import StorageError
from lakesplice.planning.diagnosis.finding import Area, Finding, Verdict
from tests.support.command_line import CommandLine
from tests.support.service_settings import settings_of

AREA = Area("lake")
SECONDS_MAX = 30.0


def right() -> Iterator[Finding]:
    yield AREA.ok("a", "fine")


def failing() -> Iterator[Finding]:
    yield AREA.ok("b", "half")
    raise StorageError("the store failed; look at it", cause="user=x password=hunter2")


def defect() -> Iterator[Finding]:
    raise ValueError("a value of a row")


def verdicts(steps: list[Step], seconds: float = SECONDS_MAX) -> list[tuple[str, Verdict]]:
    return [(one.check, one.verdict) for one in StepRunner(steps).findings(seconds)]


def test_a_step_that_fails_keeps_what_it_found_and_stops_only_those_that_need_it() -> None:
    steps = [
        Step("lake", "b", failing),
        Step("lake", "needs b", right, ("b",)),
        Step("lake", "needs that", right, ("needs b",)),
        Step("lake", "a", right),
    ]
    assert verdicts(steps) == [
        ("b", Verdict.OK),
        ("b", Verdict.PROBLEM),
        ("needs b", Verdict.UNKNOWN),
        ("needs that", Verdict.UNKNOWN),
        ("a", Verdict.OK),
    ]


def test_a_step_reports_its_end_even_if_it_failed_or_was_skipped() -> None:
    ended: list[str] = []
    steps = [
        Step("lake", "a", right, (), partial(ended.append, "a")),
        Step("lake", "b", failing, (), partial(ended.append, "b")),
        Step("lake", "c", right, ("b",), partial(ended.append, "c")),
    ]
    verdicts(steps)
    assert ended == ["a", "b", "c"]


def test_errors_are_reported_without_secrets() -> None:
    _, found = StepRunner([Step("lake", "b", failing)]).findings(SECONDS_MAX)
    assert found.seen == "the store failed: user=x password=********"
    assert found.remedy == "look at it"


def test_a_defect_is_named_by_its_kind_alone_since_its_message_may_hold_anything() -> None:
    (found,) = StepRunner([Step("lake", "c", defect)]).findings(SECONDS_MAX)
    assert found.verdict is Verdict.PROBLEM
    assert "ValueError" in found.seen
    assert "value of a row" not in found.seen + found.remedy


def test_a_step_that_hangs_is_named_when_the_time_is_up() -> None:
    release = threading.Event()

    def hanging() -> Iterator[Finding]:
        release.wait(SECONDS_MAX)
        yield AREA.ok("d", "late")

    try:
        steps = [Step("lake", "a", right), Step("lake", "d", hanging), Step("lake", "e", right)]
        assert verdicts(steps, 0.2) == [
            ("a", Verdict.OK),
            ("d", Verdict.PROBLEM),
            ("e", Verdict.UNKNOWN),
        ]
    finally:
        release.set()


def test_a_step_that_takes_a_while_is_waited_for() -> None:
    def slow() -> Iterator[Finding]:
        threading.Event().wait(0.05)
        yield AREA.ok("d", "fine")

    assert verdicts([Step("lake", "d", slow)]) == [("d", Verdict.OK)]


def test_without_java_the_doctor_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", "")
    (found,) = machine.java()
    assert found.verdict is Verdict.PROBLEM
    assert "there is no program `java`" in found.seen


def test_the_room_for_a_lake_is_that_of_its_folder(tmp_path: Path) -> None:
    assert LakeExamination(settings_of(tmp_path), 5.0).folder == tmp_path


def test_the_room_for_temporary_files_is_looked_for_where_python_and_spark_write_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own, first, second = (tmp_path / name for name in ("own", "first", "second"))
    for folder in (own, first):
        folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(own))
    settings = settings_of(tmp_path, spark={"options": {"spark.local.dir": f"{first}, {second}"}})

    def looked_at() -> dict[str, str]:
        found = machine.rooms(settings, tmp_path)
        return {one.check: one.seen.partition(" free at ")[2] for one in found}

    monkeypatch.delenv("SPARK_LOCAL_DIRS", raising=False)
    assert looked_at() == {
        "disk for the lake and Spark's scratch": str(tmp_path),  # the second doesn't exist yet
        "disk for temporary files": str(own),
        "disk for Spark's scratch": str(first),
    }
    monkeypatch.setenv("SPARK_LOCAL_DIRS", str(own))
    assert looked_at() == {
        "disk for the lake": str(tmp_path),
        "disk for temporary files and Spark's scratch": str(own),
    }


@pytest.mark.slow
def test_a_probe_leaves_a_lake_as_it_found_it(tmp_path: Path) -> None:
    for root in (tmp_path / "new" / "lake", tmp_path / "old"):
        if root.name == "old":
            (root / "shop").mkdir(parents=True)
        before = sorted(tmp_path.rglob("*"))
        found = list(LakeExamination(settings_of(root), 5.0).probe())
        assert {one.verdict for one in found} == {Verdict.OK}
        assert sorted(tmp_path.rglob("*")) == before


def test_a_lake_within_a_table_is_refused(tmp_path: Path) -> None:
    (tmp_path / "table" / "_delta_log").mkdir(parents=True)
    settings = settings_of(tmp_path / "table" / "lake", metrics={"enabled": False})
    found = {one.check: one for one in examine(settings, Access(timeout_seconds=SECONDS_MAX))}
    assert found["place"].verdict is Verdict.PROBLEM
    assert found["put-if-absent"].verdict is Verdict.UNKNOWN


@pytest.fixture
def wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration whose every neighbour is missing, and secrets in it."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "no-java"))
    monkeypatch.setenv("MYSQL_PWD", "hunter2-database")
    (tmp_path / "file").touch()
    file = tmp_path / "lakesplice.yaml"
    file.write_text(
        f"""
kafka:
  bootstrap_servers: 127.0.0.1:9
  topic_pattern: shop.*
  options: {{sasl.jaas.config: 'Login required password="hunter2-kafka";'}}
lake: {{root: {tmp_path / "file" / "lake"}}}
iceberg: {{catalog: {{type: rest, uri: "http://127.0.0.1:9", token: hunter2-catalog}}}}
schema_registry:
  url: http://127.0.0.1:9
  options: {{basic.auth.user.info: 'me:hunter2-registry'}}
doctor:
  connect_url: http://127.0.0.1:9
  connect_user_info: me:hunter2-connect
  database: mysql://me@127.0.0.1:9
"""
    )
    return file


@pytest.mark.slow
def test_everything_that_is_wrong_is_named_at_once_with_what_to_do_and_no_secret(
    lakesplice: CommandLine, wrong: Path
) -> None:
    ended = lakesplice("doctor", "--config", wrong, "--json", "--timeout", "30s")
    assert ended.code == 1
    problems = {row["area"]: row for row in ended.rows if row["verdict"] == "problem"}
    named = {"machine", "lake", "broker", "registry", "connector", "database", "iceberg"}
    assert problems.keys() == named
    assert all(row["remedy"] for row in problems.values())
    assert "JAVA_HOME" in problems["machine"]["seen"]
    assert "connection refused" in problems["broker"]["seen"]
    assert "kafka.bootstrap_servers" in problems["broker"]["remedy"]
    unchecked = {(row["area"], row["check"]) for row in ended.rows if row["verdict"] == "unknown"}
    assert {("broker", "version"), ("topics", "matched"), ("records", "format")} <= unchecked
    assert "hunter2" not in ended.out + ended.err


@pytest.mark.slow
def test_the_table_fits_into_80_columns_and_says_what_to_do(
    lakesplice: CommandLine, wrong: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    ended = lakesplice("doctor", "--config", wrong, "--only-wrong", "--timeout", "30s")
    assert ended.code == 1
    assert max(map(len, ended.out.splitlines())) <= 80
    assert "→ correct host and port in" in ended.out
    assert not [line for line in ended.out.splitlines() if line.startswith("ok")]
    assert " wrong, " in ended.err


def test_addresses_are_checked_before_anything_is_asked(
    lakesplice: CommandLine, wrong: Path
) -> None:
    for option, value in (("--connect", "connect:8083"), ("--database", "mysql://me:pw@host")):
        ended = lakesplice("doctor", "--config", wrong, option, value)
        assert ended.code == 2
        assert "doctor." in ended.err
