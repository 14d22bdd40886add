"""The state machine of one table: its state, its rules by subject, and the oracle."""

from __future__ import annotations

from tests.support.table_machine.driver_rules import DriverRules
from tests.support.table_machine.mirror_rules import MirrorRules
from tests.support.table_machine.oracle import Oracle
from tests.support.table_machine.shadow_rules import ShadowRules
from tests.support.table_machine.source_rules import SourceRules
from tests.support.table_machine.upkeep_rules import UpkeepRules
from tests.support.table_machine.version_rules import VersionRules


class TableMachine(
    SourceRules, DriverRules, UpkeepRules, VersionRules, ShadowRules, MirrorRules, Oracle
):
    """The source writes, drivers come and go, services run, and the table stays true."""
