"""A connector's setting that changes values is warned of once for each topic."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.setting_warnings import SettingWarnings
from lakesplice.model.manifest import PartitionState
from lakesplice.planning.intake.report import PartitionReport


def _report(*settings: str) -> PartitionReport:
    return PartitionReport(
        partition=0, state=PartitionState(7), suspect_settings=frozenset(settings)
    )


def test_each_setting_is_logged_once_for_a_topic() -> None:
    with capture_logs() as logged:
        warnings = SettingWarnings(structlog.get_logger())
        warnings.look_at("a", [_report("x.y: does this"), _report("x.y: does this", "z: that")])
        warnings.look_at("a", [_report("x.y: does this")])
        warnings.look_at("b", [_report(), _report("x.y: does this")])
    assert [(line["topic"], line["setting"], line["detail"]) for line in logged] == [
        ("a", "x.y", "does this"),
        ("a", "z", "that"),
        ("b", "x.y", "does this"),
    ]
    assert {line["log_level"] for line in logged} == {"warning"}
