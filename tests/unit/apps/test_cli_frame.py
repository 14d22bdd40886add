"""The command line's frame: help, exit codes, messages, and commands that need no table."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from typer.core import TyperGroup
from typer.main import get_command

from lakesplice import __version__
from lakesplice.apps.cli.app import EXIT_CODES, app
from lakesplice.apps.cli.options import duration
from lakesplice.config import lake_options
from lakesplice.errors import ConfigurationError
from lakesplice.model.schema import TableSchema
from lakesplice.storage.bucket_access import Bucket
from tests.support.command_line import CommandLine
from tests.support.indexed import IndexedTable


@pytest.mark.slow
def test_help_names_every_command(lakesplice: CommandLine) -> None:
    ended = lakesplice("--help")
    assert ended.code == 0
    for name in ("run", "read", "history", "tables", "index", "inspect", "dlq", "unpark", "demo"):
        assert f" {name} " in ended.out


@pytest.mark.parametrize(
    "command",
    [
        *("run", "config", "demo", "read", "history", "tables", "unpark", "splice"),
        *("version", "index check", "index rebuild", "dlq list"),
        *("inspect log", "inspect manifest", "inspect deltas", "inspect index"),
    ],
)
def test_every_command_explains_itself(lakesplice: CommandLine, command: str) -> None:
    ended = lakesplice(*command.split(), "--help")
    assert ended.code == 0
    assert "Usage: lakesplice" in ended.out


@pytest.mark.slow
def test_help_is_quick_and_loads_no_engine() -> None:
    program = (
        "import sys, contextlib\n"
        "from lakesplice.apps.cli import main\n"
        "with contextlib.suppress(SystemExit): main(['--help'])\n"
        "engines = {'pyspark', 'pyarrow', 'polars', 'numpy', 'kafka', 'pydantic'}\n"
        "heavy = engines & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)\n"
    )
    started = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        env={"PYTHONPATH": "service"},
        cwd=Path(__file__).parents[3],
        check=False,
    )
    assert done.returncode == 0, done.stderr
    # Half a second on a quiet machine; this bound only catches an engine that creeps in.
    assert time.monotonic() - started < 10


@pytest.mark.slow
@pytest.mark.parametrize(("command", "niceness"), [("verify", 10), ("tables", 0)])
def test_commands_that_read_whole_tables_let_a_service_go_first(
    command: str, niceness: int
) -> None:
    # Only a process of its own may be slowed down.
    program = (
        "import sys, os, contextlib\n"
        "from lakesplice.apps.cli import main\n"
        f"sys.argv = ['lakesplice', '--debug', '{command}', '--help']\n"
        "before = os.nice(0)\n"
        "with contextlib.suppress(SystemExit): main()\n"
        "print('niceness', before, os.nice(0))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True
    )
    before, after = map(int, done.stdout.split()[-2:])
    assert after == min(19, before + niceness)


def test_the_version_is_reported(lakesplice: CommandLine) -> None:
    assert lakesplice("version").out.startswith("lakesplice ")


@pytest.mark.slow
def test_a_misspelt_command_or_option_is_a_usage_error(lakesplice: CommandLine) -> None:
    for arguments in (["raed"], ["read", "a", "--veiw", "x"], ["read"]):
        ended = lakesplice(*arguments)
        assert ended.code == 2
        assert "Usage" in ended.err


def test_a_wrong_configuration_ends_with_2_and_one_message(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    file = tmp_path / "c.yaml"
    file.write_text("kafka: {bootstrap_server: a}\n")
    for command in ("run", "config"):
        ended = lakesplice(command, "--config", str(file))
        assert ended.code == 2
        assert ended.err.startswith("lakesplice: the configuration of ")
        assert "did you mean kafka.bootstrap_servers?" in ended.err
        assert "Traceback" not in ended.err
        assert not ended.out


def test_debug_shows_where_an_error_came_from(lakesplice: CommandLine, tmp_path: Path) -> None:
    ended = lakesplice("--debug", "history", str(tmp_path))
    assert ended.code == 1
    assert "Traceback" in ended.err
    assert "there is no table here" in ended.err


def test_the_settings_in_effect_are_shown(
    lakesplice: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LAKESPLICE_KAFKA__OPTIONS__SASL_PASSWORD", "hunter2")
    file = tmp_path / "c.yaml"
    file.write_text('kafka: {bootstrap_servers: "a:1", topic_pattern: b}\nlake: {root: c}\n')
    ended = lakesplice("config", "--config", str(file))
    assert ended.code == 0
    assert yaml.safe_load(ended.out)["lake"]["root"] == "c"
    assert "hunter2" not in ended.out


@pytest.mark.slow
def test_the_schema_of_the_file_is_shown(lakesplice: CommandLine) -> None:
    ended = lakesplice("config", "--schema")
    assert "kafka" in json.loads(ended.out)["properties"]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90.0), ("90", 90.0), ("1m30s", 90.0), ("500ms", None), ("2h", None), ("x", None)],
)
def test_durations_are_written_as_in_the_configuration(text: str, seconds: float | None) -> None:
    kind = duration(1, 3_600)
    if seconds is None:
        with pytest.raises(typer.BadParameter, match=r"1s to 1h|such as 500ms"):
            kind(text)
    else:
        assert kind(text) == seconds
    assert duration(0, 1e9, unit=3_600)("2") == 7_200
    for wrong in ("nan", "inf", "-1"):
        with pytest.raises(typer.BadParameter):
            kind(wrong)


@pytest.mark.parametrize(
    "arguments",
    [
        ("unpark", "--wait", "90s"),
        ("vacuum", "--retention", "7d"),
        ("purge", "--older-than", "30d"),
    ],
)
def test_a_command_takes_such_a_duration(
    lakesplice: CommandLine, tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    ended = lakesplice(arguments[0], tmp_path, *arguments[1:])
    assert ended.code == 1
    assert "there is no table" in ended.err


def commands(app: typer.Typer, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Every command's words and function, groups within groups."""
    for command in app.registered_commands:
        assert command.callback is not None
        yield " ".join((*path, str(command.name or command.callback.__name__))), command.callback
    for group in app.registered_groups:
        assert group.typer_instance is not None
        yield from commands(group.typer_instance, (*path, str(group.name)))


def test_every_command_writes_json_when_asked() -> None:
    with_json = {
        words for words, function in commands(app) if "as_json" in signature(function).parameters
    }
    assert {words for words, _ in commands(app)} == with_json
    for words, function in commands(app):
        if "form" in signature(function).parameters:
            assert words in with_json, "--format without --json"


def test_json_is_short_for_its_format(lakesplice: CommandLine, tmp_path: Path) -> None:
    IndexedTable(tmp_path / "shop" / "items", TableSchema())
    table = tmp_path / "shop" / "items"
    for command in (["history", table], ["read", table], ["tables", tmp_path]):
        asked = lakesplice(*command, "--json")
        assert (asked.code, asked.err) == (0, "")
        assert asked.rows == lakesplice.rows(*command)


def test_the_settings_as_json_hold_no_secret(lakesplice: CommandLine, tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(
        "kafka: {bootstrap_servers: 'a:1', topic_pattern: b, options: {x: hunter2}}\n"
        "lake: {root: c}\ndoctor: {connect_user_info: 'me:hunter2'}\n"
    )
    ended = lakesplice("config", "--config", file, "--json")
    assert ended.rows[0]["lake"]["root"] == "c"
    assert "hunter2" not in ended.out


def test_a_misspelt_command_or_table_is_answered_with_the_right_one(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    assert "Did you mean 'tables'" in lakesplice("tbles", tmp_path).err
    IndexedTable(tmp_path / "shop" / "orders", TableSchema())
    for wrong in ("shop/order", "shpo/orders", "sho/ordrs"):
        ended = lakesplice("history", tmp_path / wrong)
        assert ended.code == 1
        assert f"did you mean {tmp_path}/shop/orders?" in ended.err, wrong
    assert "give the path <lake>" in lakesplice("history", tmp_path / "x" / "y").err


def test_the_version_is_reported_by_command_and_option(lakesplice: CommandLine) -> None:
    told = lakesplice("--version")
    assert (told.code, told.out) == (0, f"lakesplice {__version__}\n")
    assert lakesplice("version").out == told.out


@pytest.mark.slow
def test_a_shell_gets_completions_of_a_word(
    lakesplice: CommandLine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("_LAKESPLICE_COMPLETE", "complete_bash")
    for words, expected in (("lakesplice do", "doctor"), ("lakesplice status --wa", "--watch")):
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        assert expected in lakesplice().out.split()


def groups(group: TyperGroup, path: tuple[str, ...] = ()) -> Iterator[tuple[str, TyperGroup]]:
    """The command line itself and every group of commands, with its words."""
    yield " ".join(path), group
    for name, inner in group.commands.items():
        if isinstance(inner, TyperGroup):
            yield from groups(inner, (*path, name))


@pytest.mark.slow
def test_every_command_is_completed_and_named_when_it_is_misspelt() -> None:
    root = get_command(app)
    assert isinstance(root, TyperGroup)
    met = 0
    for words, group in groups(root):
        context = typer.Context(group, info_name=words or "lakesplice")
        for name in group.commands:
            offered = {item.value for item in group.shell_complete(context, name[:-1])}
            assert name in offered, f"{words} {name}"
            wrong = name + name[-1]
            with pytest.raises(Exception, match=f"Did you mean.*'{name}'"):
                group.resolve_command(context, [wrong])
            met += 1
    assert met > len(list(commands(app)))


def test_every_command_that_opens_a_lake_takes_the_services_configuration() -> None:
    without = {
        words for words, function in commands(app) if "config" not in signature(function).parameters
    }
    assert without == {"demo", "version", "splice", "declare", "inspect pages"}


def test_exit_codes_tell_what_was_wrong_from_what_was_met(
    lakesplice: CommandLine, tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing"
    looking = ("tables", "history", "read", "dlq list", "index check", "inspect log")
    changing = ("compact", "merge", "unpark", "index rebuild")
    met = [[*words.split(), nothing] for words in (*looking, *changing)]
    wrong: list[list[str | Path]] = [
        ["tables"],
        ["history", nothing, "--limit", "0"],
        ["unpark", nothing, "--new-epoch", "--repeated"],
        ["tables", "ftp://somewhere"],
        ["tables", nothing, "--config", tmp_path / "absent.yaml"],
    ]
    assert {tuple(map(str, given)): lakesplice(*given).code for given in met} == {
        tuple(map(str, given)): 1 for given in met
    }
    assert {tuple(map(str, given)): lakesplice(*given).code for given in wrong} == {
        tuple(map(str, given)): 2 for given in wrong
    }
    text = (Path(__file__).parents[3] / "docs" / "operations.md").read_text()
    for code, meaning in EXIT_CODES.items():
        assert f"| {code} | {meaning} |" in text


def test_options_of_a_store_come_from_the_file_and_from_variables(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    needed = 'kafka: {bootstrap_servers: "a:1", topic_pattern: b}\n'
    file.write_text(f"{needed}lake: {{root: c, options: {{aws_region: here}}}}\n")
    endpoint = "LAKESPLICE_LAKE__OPTIONS__AWS_ENDPOINT"
    told = {endpoint: "http://there", "LAKESPLICE_CONFIG": str(file)}
    assert dict(lake_options(file, {})) == {"aws_region": "here"}
    for config in (file, None):
        bucket = Bucket.of("s3://b", lake_options(config, told))
        assert dict(bucket.options)["endpoint"] == "http://there", "as Delta's writers name it"
    with pytest.raises(ConfigurationError, match="LAKESPLICE_LAKE__OPTION_"):
        lake_options(None, {"LAKESPLICE_LAKE__OPTION_": "x"})
