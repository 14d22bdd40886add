"""docs/commands.md equals the command line's own help."""

from __future__ import annotations

from lakesplice.apps.cli.reference import commands_page
from tests.support.machine import ROOT


def test_the_page_of_commands_is_made_from_the_command_line() -> None:
    assert (ROOT / "docs" / "commands.md").read_text(encoding="utf-8") == commands_page()
