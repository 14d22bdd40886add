"""The bill of materials names everything that the service needs, and every licence is on the
list.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

from lakesplice.spark.jars import SPARK_KAFKA
from runtime_lock import runtime_names
from supply_chain import licence_of, main
from tests.support.machine import ROOT

# Only Windows installs these.
_ELSEWHERE = {"colorama", "pywin32"}


@pytest.mark.slow
def test_the_bill_has_every_package_and_jar_with_digests_and_is_valid(tmp_path: Path) -> None:
    assert main([str(tmp_path)]) == 0
    text = (tmp_path / "sbom.cdx.json").read_text()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    bill = json.loads(text)
    assert bill["metadata"]["component"]["name"] == "lakesplice"
    parts = {part["name"]: part for part in bill["components"]}
    packages = runtime_names((ROOT / "requirements.lock").read_text())
    jars = {jar.name for jar in SPARK_KAFKA.modules}
    assert parts.keys() - _ELSEWHERE == (packages | jars) - _ELSEWHERE
    assert all(parts[name]["hashes"] for name in packages - _ELSEWHERE)
    listed = (tmp_path / "licences.md").read_text()
    assert all(f"| {name} | {part['version']} |" in listed for name, part in parts.items())


def test_a_licence_that_is_not_listed_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, licence in (("good", "MIT AND Zlib"), ("other", "GPL-3.0-only"), ("none", "")):
        folder = tmp_path / f"{name}part-1.0.dist-info"
        folder.mkdir()
        head = f"Metadata-Version: 2.4\nName: {name}part\nVersion: 1.0\n"
        (folder / "METADATA").write_text(head + (licence and f"License-Expression: {licence}\n"))
    monkeypatch.syspath_prepend(str(tmp_path))
    assert licence_of("goodpart") == "MIT AND Zlib"
    for name in ("otherpart", "nonepart"):
        with pytest.raises(LookupError, match=f"{name} has no licence that is on the list"):
            licence_of(name)
