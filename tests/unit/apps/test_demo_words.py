"""What `lakesplice demo --serve` says, and the folder and ports that it takes."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from lakesplice.apps.demo.claims import claimed_folder, claimed_port
from lakesplice.apps.demo.servers import Addresses
from lakesplice.apps.demo.words import what_is_served
from lakesplice.errors import UsageError
from lakesplice.testing.servers.process import HOST, free_port
from tests.support.command_line import CommandLine

ADDRESSES = Addresses(
    page="http://127.0.0.1:9464/",
    database="127.0.0.1:13306",
    user="someone",
    password="demo-password",
    kafka="127.0.0.1:19092",
    connect="http://127.0.0.1:18083",
    lake="/there/lake",
    config="/there/lakesplice.yaml",
    client="/there/mariadb-client",
    processes={"MariaDB": 17, "the broker": 18},
)


def test_the_demo_says_where_everything_is_and_what_to_try() -> None:
    text = what_is_served(ADDRESSES)
    for value in (
        "http://127.0.0.1:9464/", "127.0.0.1:13306, user someone", "127.0.0.1:19092",
        "http://127.0.0.1:18083", "/there/lakesplice.yaml", "MariaDB 17, the broker 18",
        '/there/mariadb-client shop -e "insert into orders', "tables /there/lake",
        "DeltaTable('/there/lake/shop/orders')", "Ctrl-C stops all of it",
    ):  # fmt: skip
        assert value in text
    assert "127.0.0.1:3307" in what_is_served(replace(ADDRESSES, database="127.0.0.1:3307"))


@pytest.mark.parametrize("option", [(), ("--serve",)])
def test_a_folder_with_something_else_in_it_is_left_alone(
    lakesplice: CommandLine, tmp_path: Path, option: tuple[str, ...]
) -> None:
    precious = tmp_path / "demo" / "thesis.txt"
    precious.parent.mkdir()
    precious.write_text("mine")
    ended = lakesplice("demo", "--folder", precious.parent, *option)
    assert ended.code == 2
    assert "--folder" in ended.err
    assert precious.read_text() == "mine"
    assert [*precious.parent.iterdir()] == [precious]


def test_a_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.socket() as server:
        server.bind((HOST, 0))
        server.listen()
        taken = server.getsockname()[1]
        assert free_port(taken) not in (0, taken)
    assert free_port(taken) == taken


def test_many_demos_at_once_have_a_port_each() -> None:
    """The system's own choice of free ports repeats itself within so many."""
    usual = free_port()
    with ExitStack() as demos:
        assert len({claimed_port(usual, demos) for _ in range(300)}) == 300


def test_two_demos_at_once_have_ports_and_folders_of_their_own(tmp_path: Path) -> None:
    usual = free_port()
    with ExitStack() as first, ExitStack() as second:
        assert claimed_port(usual, first) == usual
        # Nothing listens there yet: the first demo's server starts later.
        assert claimed_port(usual, second) not in (0, usual)
    with ExitStack() as third:
        assert claimed_port(usual, third) == usual
    folder = tmp_path / "demo"
    with claimed_folder(folder):
        (folder / "lake").mkdir()
        with pytest.raises(UsageError, match="another demo runs"), claimed_folder(folder):
            pass
    with claimed_folder(folder):
        assert (folder / "lake").exists()
