"""A connector's setting that changes values is logged once for a topic, and shown for a day."""

from __future__ import annotations

import structlog
from structlog.testing import capture_logs

from lakesplice.apps.service.tables.setting_warnings import SettingWarnings, still_shown
from lakesplice.model.driver_status import SuspectSetting
from lakesplice.model.moments import EpochMs
from lakesplice.model.offsets import Offset
from lakesplice.model.progress.source_state import PartitionState
from lakesplice.planning.intake.report import PartitionReport
from lakesplice.testing.doubles import FixedClock


def report(*settings: str) -> PartitionReport:
    return PartitionReport(
        partition=0,
        state=PartitionState(Offset(7)),
        stopped=False,
        suspect_settings=frozenset(settings),
    )


def test_each_setting_is_logged_once_and_shown_as_last_seen() -> None:
    clock = FixedClock()
    with capture_logs() as logged:
        warnings = SettingWarnings("a", clock, structlog.get_logger())
        warnings.look_at([report("x.y: does this"), report("x.y: does this", "z: that")])
        began = clock.now_ms()
        clock.advance(5)
        warnings.look_at([report(), report("x.y: does this")])
    assert [(line["topic"], line["setting"], line["detail"]) for line in logged] == [
        ("a", "x.y", "does this"),
        ("a", "z", "that"),
    ]
    assert {line["log_level"] for line in logged} == {"warning"}
    assert set(warnings.shown()) == {
        SuspectSetting("x.y", "does this", EpochMs(began + 5_000)),
        SuspectSetting("z", "that", began),
    }


def test_a_warning_stays_for_a_day_after_it_was_last_seen() -> None:
    seen = [
        SuspectSetting("b", "", EpochMs(100)),
        SuspectSetting("a", "", EpochMs(50)),
        SuspectSetting("b", "", EpochMs(9)),
    ]
    assert still_shown(seen, EpochMs(100)) == (
        SuspectSetting("a", "", EpochMs(50)),
        SuspectSetting("b", "", EpochMs(100)),
    )
    assert still_shown(seen, EpochMs(86_400_100)) == (SuspectSetting("b", "", EpochMs(100)),)
    assert still_shown(seen, EpochMs(86_400_101)) == ()
