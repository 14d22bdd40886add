"""The image gets what the project depends on, and nothing of what its developers use."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from types import ModuleType

import pytest

from tests.support.machine import ROOT


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "runtime_lock", ROOT / "tools" / "runtime_lock.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


runtime_lock = _load()
LOCK = (ROOT / "requirements.lock").read_text()
SMALL = """\
alpha==1.0 \\
    --hash=sha256:aa
    # via
    #   lakesplice (pyproject.toml)
    #   omega
beta==2.0 ; python_full_version < '3.12' \\
    --hash=sha256:bb
    # via alpha
beta==3.0 ; python_full_version >= '3.12' \\
    --hash=sha256:cc
    # via alpha
gamma==1.0 \\
    --hash=sha256:dd
    # via omega
omega==1.0 \\
    --hash=sha256:ee
    # via lakesplice (pyproject.toml:dev)
"""


def _project() -> dict[str, set[str]]:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text())
    lists = {"runtime": table["project"]["dependencies"], "dev": table["dependency-groups"]["dev"]}
    return {
        name: {found[0] for one in entries if (found := re.match(r"[A-Za-z0-9._-]+", one))}
        for name, entries in lists.items()
    }


def test_a_package_is_the_services_if_its_parents_lead_to_the_service() -> None:
    assert runtime_lock.runtime_names(SMALL) == {"alpha", "beta"}


def test_entries_keep_their_hashes_and_markers() -> None:
    assert runtime_lock.named(SMALL, {"beta"}) == "".join(
        entry for name, entry in runtime_lock.pins(SMALL) if name == "beta"
    )
    assert runtime_lock.named(SMALL, {"beta"}).count("--hash") == 2
    assert "python_full_version < '3.12'" in runtime_lock.named(SMALL, {"beta"})


def test_a_package_that_the_lock_lacks_is_named() -> None:
    with pytest.raises(KeyError, match="delta"):
        runtime_lock.named(SMALL, {"delta", "alpha"})


def test_the_runtime_lock_has_all_dependencies_and_no_development_tool() -> None:
    project, taken = _project(), runtime_lock.runtime_names(LOCK)
    assert project["runtime"] <= taken
    assert not (project["dev"] - {"arro3-core"}) & taken, "deltalake alone brings a dev package"


def test_the_lock_falls_apart_into_its_entries_without_a_rest() -> None:
    assert "".join(entry for _, entry in runtime_lock.pins(LOCK)) == LOCK
