"""The pure parts of fetching jars; the fetch itself happens at every set-up."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from lakesplice.errors import ConfigurationError, RetryableError
from lakesplice.spark import jars
from lakesplice.spark.jars import ALL, JarSet, Module, ensure_jars, folder_of, ivy_module

ONE = JarSet("one", (Module("org.example", "thing_2.13", "1.2.3"),))


def test_a_set_with_other_modules_has_another_folder(tmp_path: Path) -> None:
    changed = JarSet("one", (Module("org.example", "thing_2.13", "1.2.4"),))
    with_dependencies = JarSet("one", (Module("org.example", "thing_2.13", "1.2.3", True),))
    folders = {folder_of(which, tmp_path) for which in (ONE, changed, with_dependencies)}
    assert len(folders) == 3


def test_the_order_of_modules_does_not_change_the_folder() -> None:
    turned = JarSet(jars.DELTA.name, tuple(reversed(jars.DELTA.modules)))
    assert turned.folder_name == jars.DELTA.folder_name


@pytest.mark.parametrize("which", ALL, ids=lambda which: which.name)
def test_every_set_asks_ivy_for_exact_revisions(which: JarSet) -> None:
    dependencies = ElementTree.fromstring(ivy_module(which)).findall("./dependencies/dependency")
    asked = [(d.get("org"), d.get("name"), d.get("rev"), d.get("transitive")) for d in dependencies]
    assert asked == [
        (m.organisation, m.name, m.revision, str(m.transitive).lower()) for m in which.modules
    ]
    assert not any(sign in m.revision for m in which.modules for sign in "+[](),")


def test_no_two_sets_share_a_name() -> None:
    assert len({which.name for which in ALL}) == len(ALL)


def test_a_filled_folder_is_used_without_java(tmp_path: Path) -> None:
    folder = folder_of(ONE, tmp_path)
    folder.mkdir(parents=True)
    (folder / "b.jar").touch()
    (folder / "a.jar").touch()
    found = ensure_jars(ONE, tmp_path, java="no-such-java")
    assert [path.name for path in found] == ["a.jar", "b.jar"]


def test_a_missing_java_is_a_configuration_error_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="install a JDK"):
        ensure_jars(ONE, tmp_path, java="no-such-java")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_fetch_says_what_to_do_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(RetryableError, match="copy the folder from a machine") as caught:
        ensure_jars(ONE, tmp_path, java="false")
    assert caught.value.facts["missing"] == ["org.example:thing_2.13:1.2.3"]
    assert caught.value.facts["folder"] == str(folder_of(ONE, tmp_path))
    assert list(tmp_path.iterdir()) == []


def test_the_telling_lines_of_ivys_output_are_kept() -> None:
    output = "\n".join(
        [
            ":: resolving dependencies ::",
            "\t\tmodule not found: org.example#thing;1",
            "\t:: UNRESOLVED DEPENDENCIES ::",
            "",
            ":: done ::",
        ]
    )
    told = jars.ivy_complaint(output)
    assert "module not found: org.example#thing;1" in told
    assert "resolving" not in told
    assert jars.ivy_complaint("") == "Ivy said nothing"


def test_the_loser_of_a_race_uses_what_the_winner_put_there(tmp_path: Path) -> None:
    folder = folder_of(ONE, tmp_path / "cache")
    jar = "thing_2.13-1.2.3.jar"
    fetch_while_another_wins = tmp_path / "java"
    fetch_while_another_wins.write_text(
        "#!/bin/sh\n"
        f"mkdir jars && echo ours > jars/{jar}\n"
        f"mkdir '{folder}' && echo theirs > '{folder}/{jar}'\n"
    )
    fetch_while_another_wins.chmod(0o755)
    (found,) = ensure_jars(ONE, tmp_path / "cache", java=str(fetch_while_another_wins))
    assert found.read_text() == "theirs\n"
    assert [path.name for path in (tmp_path / "cache").iterdir()] == [folder.name]


def test_only_the_sets_that_are_named_are_fetched(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder_of(jars.SPARK_KAFKA, tmp_path).mkdir(parents=True)
    assert jars.main([str(tmp_path), "no-such-java", "spark-kafka"]) == 0
    assert jars.main([str(tmp_path), "no-such-java", "spark-kafka", "delta"]) == 1
    assert "install a JDK" in capsys.readouterr().err


def test_a_set_that_does_not_exist_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert jars.main([str(tmp_path), "java", "spark-kafak"]) == 1
    assert "spark-kafak" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_set_whose_bytes_are_pinned_says_so_of_jars_that_differ(tmp_path: Path) -> None:
    (tmp_path / "b.jar").write_bytes(b"two")
    (tmp_path / "a.jar").write_bytes(b"one")
    found = jars.digest_of(tmp_path.iterdir())
    assert found == jars.digest_of(sorted(tmp_path.iterdir(), reverse=True))
    (tmp_path / "a.jar").write_bytes(b"One")
    assert found != jars.digest_of(tmp_path.iterdir())
