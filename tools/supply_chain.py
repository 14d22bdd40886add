"""Writes what the service is made of: a bill of materials, and the licence of each part.

    python tools/supply_chain.py [FOLDER]

FOLDER (default build/supply-chain) gets `sbom.cdx.json` (CycloneDX 1.6: the packages of
requirements.lock that the service runs on and the jars it fetches, each with its version and, for
packages, the digests that the installer demands) and `licences.md`. Licences are those that the
installed packages state. A package without a licence of the list below is an error: somebody has to
read its terms first.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path

from cyclonedx.contrib.this.builders import this_component
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseExpression
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from lakesplice import __version__
from lakesplice.spark.jars import SPARK_KAFKA
from runtime_lock import pins, runtime_names

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "supply-chain"
# What packages write instead of the identifiers of SPDX.
_MEANT = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "BSD": "BSD-3-Clause",
    "ISC License (ISCL)": "ISC",
    "ISC License": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}
# Read by us, since the package's metadata lack it.
_READ = {"polars-hash": "MIT"}
_ALLOWED = {
    *("0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MPL-2.0"),
    *("PSF-2.0", "Zlib"),
}
_VERSION = re.compile(r"==([^ \\;]+)")
_DIGEST = re.compile(r"--hash=sha256:([0-9a-f]{64})")


def licence_of(package: str) -> str:
    """Return the licence of an installed package as an expression of SPDX.

    `LookupError` if it states none, or one that isn't on the list.
    """
    stated = metadata(package)
    classes = stated.get_all("Classifier") or ()
    found = [
        *(stated.get_all("License-Expression") or ()),
        *(stated.get_all("License") or ()),
        *filter(None, (_READ.get(package),)),
        *(one.split(" :: ")[-1] for one in classes if one.startswith("License")),
    ]
    for one in found:
        expression = _MEANT.get(str(one), str(one))
        names = re.findall(r"[\w.-]+", re.sub(r"\b(AND|OR|WITH)\b", " ", expression))
        if names and set(names) <= _ALLOWED:
            return expression
    raise LookupError(
        f"{package} has no licence that is on the list: {[one[:60] for one in found]}"
    )


def packages(lock: str) -> list[Component]:
    """Return the packages of a lock that the service runs on here, not those of other systems."""
    wanted = {name for name in runtime_names(lock) if _is_installed(name)}
    return [_package(name, entry) for name, entry in pins(lock) if name in wanted]


def jars() -> list[Component]:
    """Return the jars that Spark needs for Kafka; all are of the Apache Software Foundation."""
    return [
        Component(
            name=jar.name,
            group=jar.organisation,
            version=jar.revision,
            type=ComponentType.LIBRARY,
            purl=PackageURL("maven", jar.organisation, jar.name, jar.revision),
            licenses=[LicenseExpression("Apache-2.0")],
        )
        for jar in SPARK_KAFKA.modules
    ]


def sbom(lock: str) -> str:
    """Return the bill of materials as JSON; `LookupError` as `licence_of`."""
    bom = Bom(components=[*packages(lock), *jars()])
    bom.metadata.tools.components.add(this_component())
    bom.metadata.component = service = Component(
        name="lakesplice",
        version=__version__,
        type=ComponentType.APPLICATION,
        licenses=[LicenseExpression("Apache-2.0")],
    )
    bom.register_dependency(service, bom.components)
    return JsonV1Dot6(bom).output_as_string(indent=2)


def licences(parts: list[Component]) -> str:
    """Return a table of parts with their versions and licences, in Markdown."""
    lines = ["| part | version | licence |", "| --- | --- | --- |"]
    for part in sorted(parts, key=lambda one: one.name):
        (licence,) = part.licenses
        lines.append(f"| {part.name} | {part.version} | {licence.value} |")
    return "\n".join([*lines, ""])


def _is_installed(package: str) -> bool:
    try:
        return bool(metadata(package))
    except PackageNotFoundError:
        return False


def _package(name: str, entry: str) -> Component:
    version = _VERSION.search(entry)
    assert version is not None, "a lock pins every package"
    return Component(
        name=name,
        version=version[1],
        type=ComponentType.LIBRARY,
        purl=PackageURL("pypi", None, name, version[1]),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=one) for one in _DIGEST.findall(entry)],
        licenses=[LicenseExpression(licence_of(name))],
    )


def main(arguments: list[str]) -> int:
    """Write both files; 1 with a message if a licence isn't on the list."""
    folder = Path(arguments[0]) if arguments else FOLDER
    lock = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    try:
        bill = sbom(lock)
    except LookupError as error:
        print(error.args[0], file=sys.stderr)
        return 1
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sbom.cdx.json").write_text(bill)
    (folder / "licences.md").write_text(licences([*packages(lock), *jars()]))
    print(f"written to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
