"""Judges the settings of Debezium's connectors, as Kafka Connect returns them:
docs/connector.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lakesplice.planning.diagnosis.finding import Area, Finding, Verdict, counted, first_names

_AREA = Area("connector")
_JSON = "org.apache.kafka.connect.json.JsonConverter"
_FLATTENS = "io.debezium.transforms.ExtractNewRecordState"
_TRUE, _FALSE = "true", "false"

Settings = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class ConnectorFacts:
    """A connector: its state, how many of its tasks failed, and those of its settings that
    `is_looked_at` allows. `is_read` says whether a topic of its prefix is read here; None if topics
    aren't known. `types_told` says whether its topic of schema changes is read here.
    """

    name: str
    state: str
    tasks: int
    tasks_failed: int
    settings: Settings = field(default_factory=dict)
    is_read: bool | None = None
    types_told: bool = False


@dataclass(frozen=True, slots=True)
class _Rule:
    """A setting, Debezium's default, which values are right, and what a wrong one does."""

    name: str
    default: str
    is_right: Callable[[str], bool]
    verdict: Verdict
    effect: str
    remedy: str


def _rule(
    name: str, default: str, right: Sequence[str], verdict: Verdict, effect: str, remedy: str
) -> _Rule:
    return _Rule(name, default, lambda value: value.lower() in right, verdict, effect, remedy)


def _is_positive(value: str) -> bool:
    return value.isdecimal() and int(value) > 0


_EXACT_TIMES = (
    *("adaptive_time_microseconds", "adaptive"),
    *("isostring", "microseconds", "nanoseconds"),
)
_RULES = (
    _rule(
        "bigint.unsigned.handling.mode",
        "long",
        ["precise"],
        Verdict.PROBLEM,
        effect="BIGINT UNSIGNED from 2^63 on becomes negative",
        remedy="set it to precise",
    ),
    _rule(
        "enable.time.adjuster",
        _TRUE,
        [_FALSE],
        Verdict.WARNING,
        effect="the date 0001-01-01 becomes 2001-01-01",
        remedy="set it to false",
    ),
    _Rule(
        "binlog.buffer.size",
        "0",
        _is_positive,
        Verdict.WARNING,
        effect="changes that were rolled back to a savepoint are sent",
        remedy="set it to 10000",
    ),
    _rule(
        "decimal.handling.mode",
        "precise",
        ["precise", "string"],
        Verdict.PROBLEM,
        effect="DECIMAL loses digits",
        remedy="set it to precise or string",
    ),
    _rule(
        "time.precision.mode",
        _EXACT_TIMES[0],
        _EXACT_TIMES,
        Verdict.PROBLEM,
        effect="DATETIME and TIME are cut to milliseconds",
        remedy=f"leave it at its default, {_EXACT_TIMES[0]}",
    ),
    _rule(
        "binary.handling.mode",
        "bytes",
        ["bytes", "base64"],
        Verdict.WARNING,
        effect="BLOB and BINARY arrive as other text",
        remedy="set it to bytes",
    ),
    _rule(
        "include.schema.changes",
        _TRUE,
        [_TRUE],
        Verdict.WARNING,
        effect="no event shows renames and DROP TABLE",
        remedy="set it to true, its default",
    ),
    _rule(
        "skipped.operations",
        "t",
        ["t", "none", ""],
        Verdict.WARNING,
        effect="changes of these kinds are left out",
        remedy="set it to t, its default, or to none",
    ),
)
_LOOKED_AT = frozenset(
    {rule.name for rule in _RULES}
    | {"connector.class", "topic.prefix", "tombstones.on.delete", "transforms"}
    | {"value.converter", "value.converter.schemas.enable"}
    | {"value.converter.replace.null.with.default"}
    | {"value.converter.ignore.default.for.nullables"}
)


def is_of_mysql(kind: str) -> bool:
    """Whether a class of connectors is Debezium's for MySQL or MariaDB."""
    return kind.startswith(("io.debezium.connector.mysql.", "io.debezium.connector.mariadb."))


def is_looked_at(name: str) -> bool:
    """Whether a connector's setting is judged, and holds no secret."""
    transforms = name.startswith("transforms.")
    return name in _LOOKED_AT or (
        transforms and name.endswith((".type", ".replace.null.with.default"))
    )


def judge_connectors(connectors: Sequence[ConnectorFacts]) -> Iterator[Finding]:
    """Judge all connectors that Connect has, those of other sources left out."""
    if not connectors:
        yield _AREA.warning(
            "connectors",
            "Connect has no Debezium connector for MySQL or MariaDB",
            "see that --connect names the Connect cluster that writes the topics",
        )
    elsewhere = [one.name for one in connectors if one.is_read is False]
    if elsewhere:
        yield _AREA.ok("not read here", f"{first_names(elsewhere)}: no topic of theirs is read")
    for one in connectors:
        if one.is_read is not False:
            yield from _judge(one)


def _judge(one: ConnectorFacts) -> Iterator[Finding]:
    yield _judge_state(one)
    found = [
        *_judge_rules(one),
        *_judge_nulls(one),
        *_judge_types(one),
        *_judge_shape(one),
    ]
    yield from found or [_AREA.ok(one.name, "its settings keep values as they are")]
    yield _AREA.ok(one.name, f"tombstones: {_tombstones(one.settings)}; they are skipped")


def _judge_state(one: ConnectorFacts) -> Finding:
    if one.state == "RUNNING" and one.tasks and not one.tasks_failed:
        return _AREA.ok(one.name, f"running, {counted(one.tasks, 'task')}")
    tasks = f", {one.tasks_failed} of {counted(one.tasks, 'task')} failed" if one.tasks else ""
    return _AREA.problem(
        one.name,
        f"{one.state.lower()}{tasks or ', without a task'}",
        f"see the trace at /connectors/{one.name}/status, correct the cause, then restart it",
    )


def _judge_rules(one: ConnectorFacts) -> Iterator[Finding]:
    for rule in _RULES:
        value = one.settings.get(rule.name, rule.default)
        if not rule.is_right(value):
            default = "" if rule.name in one.settings else " by default"
            seen = f"{rule.name}={value}{default}: {rule.effect}"
            yield Finding("connector", one.name, rule.verdict, seen, rule.remedy)


def _judge_nulls(one: ConnectorFacts) -> Iterator[Finding]:
    """NULL becomes its column's DEFAULT, by the converter or by a transform before it."""
    effect = "NULL becomes its column's DEFAULT"
    converter = one.settings.get("value.converter", "")
    if converter and converter != _JSON:
        name, wanted = "value.converter.ignore.default.for.nullables", _TRUE
    else:
        name, wanted = "value.converter.replace.null.with.default", _FALSE
    if one.settings.get(name, "").lower() != wanted:
        seen = f"{name} isn't {wanted}: {effect}"
        if converter:
            remedy = f"set {name}={wanted}, then take a new snapshot"
            if "apicurio" in converter:
                remedy = "Apicurio's converter has no such setting: use another one"
            yield _AREA.problem(one.name, seen, remedy)
        else:
            yield _AREA.warning(
                *(one.name, f"{seen}, unless the worker sets it otherwise"),
                f"set value.converter and {name}={wanted} at the connector",
            )
    for transform in _flattening(one.settings):
        name = f"transforms.{transform}.replace.null.with.default"
        if one.settings.get(name, "").lower() != _FALSE:
            seen = f"{name} isn't false: {effect}"
            yield _AREA.problem(one.name, seen, f"set {name}=false, then take a new snapshot")


def _judge_types(one: ConnectorFacts) -> Iterator[Finding]:
    described = one.settings.get("value.converter.schemas.enable", _TRUE).lower()
    if described == _FALSE and not one.types_told:
        yield _AREA.warning(
            one.name,
            "value.converter.schemas.enable=false: events don't say their columns' types",
            "set it to true, or name the connector's topic.prefix in schema_change_topics.names",
        )


def _judge_shape(one: ConnectorFacts) -> Iterator[Finding]:
    if flattening := _flattening(one.settings):
        yield _AREA.warning(
            one.name,
            f"the transform {first_names(flattening)} flattens events: the row before is missing",
            "leave the transform out; Lakesplice reads Debezium's own envelope",
        )
    prefix = one.settings.get("topic.prefix", "")
    if "." in prefix:
        yield _AREA.warning(
            one.name,
            f"topic.prefix {prefix} has a dot: a topic's first records must say its table",
            "a prefix without dots is easiest",
        )


def _flattening(settings: Settings) -> list[str]:
    names = [name.strip() for name in settings.get("transforms", "").split(",")]
    return [name for name in names if settings.get(f"transforms.{name}.type") == _FLATTENS]


def _tombstones(settings: Settings) -> str:
    return "sent" if settings.get("tombstones.on.delete", _TRUE).lower() == _TRUE else "not sent"
