"""Writes docs/commands.md from the command line itself; its head says how to call it."""

from __future__ import annotations

import re
import sys

import typer
from typer.cli import get_docs_for_click

from lakesplice.apps.cli.app import app

_HEAD = """\
# Commands

This file is written by `python -m lakesplice.apps.cli.reference > docs/commands.md`; change the
docstrings and options in `service/lakesplice/apps/cli/` instead.
"""
_NAME = "lakesplice"
# The options that install a shell's completion; they don't belong to any command.
_COMPLETION = re.compile(r"^\* `--(?:install|show)-completion`.*\n", re.MULTILINE)


def commands_page() -> str:
    """Return the page: each command with its arguments, options, defaults and variables."""
    command = typer.main.get_command(app)
    text = get_docs_for_click(obj=command, ctx=typer.Context(command), name=_NAME, title=_NAME)
    lines = (line.rstrip() for line in _COMPLETION.sub("", text).splitlines())
    # The page has a title already.
    _, _, commands = "\n".join(lines).partition("\n")
    return f"{_HEAD}\n{commands.strip()}\n"


if __name__ == "__main__":
    sys.stdout.write(commands_page())
