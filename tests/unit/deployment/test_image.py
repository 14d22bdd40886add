"""Checks the Dockerfile; tests/e2e/test_image.py builds and runs the image."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from lakesplice.config.environment import from_environment
from lakesplice.config.settings import Settings
from lakesplice.spark.jars import SPARK_KAFKA
from tests.support import image_inputs, tools
from tests.support.machine import ROOT

TEXT = re.sub(r"\\\n", " ", (ROOT / "Dockerfile").read_text())
INSTRUCTIONS = [
    (found[1], found[2].strip()) for found in re.finditer(r"(?m)^([A-Z]+)\s+(.+)$", TEXT)
]


def _all(instruction: str) -> list[str]:
    return [rest for name, rest in INSTRUCTIONS if name == instruction]


@pytest.mark.slow
def test_hadolint_finds_nothing() -> None:
    done = subprocess.run(
        [tools.beside_python("hadolint"), "--no-color", ROOT / "Dockerfile"],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_image_runs_as_a_fixed_user_that_is_not_root() -> None:
    assert _all("USER") == ["10001:10001"]


def test_signals_reach_the_service_through_an_init_that_reaps() -> None:
    assert json.loads(_all("ENTRYPOINT")[-1]) == ["/usr/bin/tini", "--", "lakesplice"]
    assert json.loads(_all("CMD")[-1])[0] == "run"


def test_the_base_is_a_build_argument_and_pinned_by_its_digest() -> None:
    base = _all("ARG")[0]
    assert re.fullmatch(r"PYTHON_IMAGE=python:3\.11\.\d+-slim-bookworm@sha256:[0-9a-f]{64}", base)
    assert [one.split()[0] for one in _all("FROM")] == ["${PYTHON_IMAGE}", "runtime", "runtime"]


@pytest.mark.parametrize("snapshot", ["pinned", ""])
def test_packages_come_from_debians_archive_of_one_day_unless_that_is_switched_off(
    snapshot: str, tmp_path: Path
) -> None:
    (day,) = (one.partition("=")[2] for one in _all("ARG") if one.startswith("DEBIAN_SNAPSHOT"))
    assert re.fullmatch(r"20\d{6}T\d{6}Z", day)
    (installing,) = (one for one in _all("RUN") if "apt-get install" in one)
    choosing, found, _ = installing.partition("&& apt-get update")
    assert found, "packages are looked for after their source is chosen"
    own = tmp_path / "sources.list.d" / "debian.sources"
    own.parent.mkdir()
    own.write_text("of the base")
    subprocess.run(
        ["sh", "-ec", choosing.replace("/etc/apt", str(tmp_path))],
        env={"PATH": os.environ["PATH"], "DEBIAN_SNAPSHOT": snapshot and day},
        check=True,
    )
    chosen = tmp_path / "sources.list"
    if not snapshot:
        assert own.exists()
        assert not chosen.exists()
        return
    assert not own.exists()
    lines = chosen.read_text().splitlines()
    assert [line.split()[-2:] for line in lines] == [
        [suite, "main"] for suite in ("bookworm", "bookworm-updates", "bookworm-security")
    ]
    assert all(f"/{day} " in line for line in lines)


def test_the_jars_of_the_service_are_inside_where_its_setting_says() -> None:
    assert f"lakesplice.spark.jars /opt/lakesplice/jars java {SPARK_KAFKA.name}" in TEXT
    assert "LAKESPLICE_SPARK__JARS_DIR=/opt/lakesplice/jars" in TEXT


def test_the_images_variables_are_settings() -> None:
    given = dict(
        part.split("=", 1)
        for line in _all("ENV")
        for part in line.split()
        if part.startswith("LAKESPLICE_")
    )
    assert given
    assert not from_environment(given, Settings).problems


def test_everything_that_is_copied_passes_the_dockerignore() -> None:
    kept = {
        line[1:]
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copied = {
        source
        for line in _all("COPY")
        if not line.startswith("--from")
        for source in line.split()[:-1]
    }
    assert copied == kept
    assert all((ROOT / name).exists() for name in copied)


def test_the_image_was_built_and_run_since_what_goes_into_it_changed() -> None:
    command = "make nightly ARGS=tests/e2e/test_image.py"
    message = f"what goes into the image has changed: run `{command}` and commit image.sha256"
    assert image_inputs.proved() == image_inputs.digest(), message
