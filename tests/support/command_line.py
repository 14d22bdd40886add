"""The command line, called as from a shell but in this process."""

from __future__ import annotations

import io
import json
from contextlib import ExitStack, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import Any

import pytest

from lakesplice.apps.cli import main
from tests.support.privacy import SECRETS


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        """Standard output as JSON, one object a line."""
        return [json.loads(line) for line in self.out.splitlines()]


class CommandLine:
    """Calls `lakesplice`; every call ends as a process would."""

    def __init__(self, capsys: pytest.CaptureFixture[str] | None = None) -> None:
        """What a command writes is caught by `capsys`, or here where no test runs yet."""
        self._capsys = capsys

    def __call__(self, *arguments: object) -> Ended:
        """Run a command whatever its exit code."""
        said, complained = io.StringIO(), io.StringIO()
        with ExitStack() as stack:
            if self._capsys is None:
                stack.enter_context(redirect_stdout(said))
                stack.enter_context(redirect_stderr(complained))
            ended = stack.enter_context(pytest.raises(SystemExit))
            main([str(argument) for argument in arguments])
        out, err = said.getvalue(), complained.getvalue()
        if self._capsys is not None:
            out, err = self._capsys.readouterr()
        for secret in SECRETS:
            assert secret not in out + err, "a command shows a secret"
        return Ended(int(ended.value.code or 0), out, err)

    def out(self, *arguments: object) -> str:
        """Run a command that must succeed and return what it wrote."""
        ended = self(*arguments)
        assert ended.code == 0, ended.err
        return ended.out.strip()

    def rows(self, *arguments: object) -> list[dict[str, Any]]:
        """Run a command with `--format json` that must succeed and return what it lists."""
        ended = self(*arguments, "--format", "json")
        assert ended.code == 0, ended.err
        return ended.rows
