"""Fetches the jars that PyPI doesn't have, with the Ivy that PySpark contains; Maven isn't needed.

A jar set is data. Its folder is named after its content, so a folder that exists is complete and
right: it is filled under a temporary name and then renamed, which also decides a race of two
processes. For a machine without a network, copy the folder from a machine that has it.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from lakesplice.errors import ConfigurationError, RetryableError

DEFAULT_CACHE = Path("~/.cache/lakesplice/jars")
FETCH_SECONDS_MAX = 900
_LOG_LINES_SHOWN = 12


@dataclass(frozen=True)
class Module:
    """One artifact by its Maven coordinates; `transitive` includes its dependencies. `classifier`
    names another jar of the same module, such as `tests`, which comes beside the usual one.
    """

    organisation: str
    name: str
    revision: str
    transitive: bool = False
    classifier: str = ""

    @property
    def coordinates(self) -> str:
        """`organisation:name:revision`, then `:classifier` if it has one, and `+` if its
        dependencies are included.
        """
        classifier = f":{self.classifier}" if self.classifier else ""
        plus = "+" if self.transitive else ""
        return f"{self.organisation}:{self.name}:{self.revision}{classifier}{plus}"

    @property
    def jars(self) -> tuple[str, ...]:
        """The names of its own jars."""
        usual = f"{self.name}-{self.revision}"
        return (f"{usual}.jar", *([f"{usual}-{self.classifier}.jar"] if self.classifier else []))


@dataclass(frozen=True)
class JarSet:
    """Jars that belong on one classpath. `name` is for people; the modules decide the identity.

    `digest`, if it is set, is what `digest_of` must return for the fetched jars: then their
    dependencies are pinned byte for byte, too.
    """

    name: str
    modules: tuple[Module, ...]
    digest: str = ""

    @property
    def folder_name(self) -> str:
        """`<name>-<12 hex digits of the modules' digest>`: other modules, another folder."""
        listing = "\n".join(sorted(module.coordinates for module in self.modules))
        return f"{self.name}-{hashlib.sha256(listing.encode()).hexdigest()[:12]}"


SPARK_KAFKA = JarSet(
    "spark-kafka",
    (
        Module("org.apache.spark", "spark-sql-kafka-0-10_2.13", "4.1.3"),
        # Later versions of this module aren't published; only Kerberos delegation tokens use it.
        Module("org.apache.spark", "spark-token-provider-kafka-0-10_2.13", "4.0.0"),
        Module("org.apache.kafka", "kafka-clients", "3.9.1"),
        Module("org.apache.commons", "commons-pool2", "2.12.1"),
    ),
)
DELTA = JarSet(
    "delta",
    (
        Module("io.delta", "delta-spark_4.1_2.13", "4.4.0"),
        Module("io.delta", "delta-storage", "4.4.0"),
        Module("io.delta", "delta-kernel-api", "4.4.0"),
        Module("io.delta", "delta-kernel-defaults", "4.4.0"),
    ),
)
KAFKA_BROKER = JarSet(
    "kafka-broker",
    (
        Module("org.apache.kafka", "kafka_2.13", "4.1.2", transitive=True),
        Module("org.slf4j", "slf4j-simple", "1.7.36", transitive=True),
    ),
)
ALL = (SPARK_KAFKA, DELTA, KAFKA_BROKER)


def ensure_jars(which: JarSet, cache: Path | None = None, *, java: str = "java") -> list[Path]:
    """Return the set's jars, sorted by name, fetching them on the first call.

    Blocks while it fetches (10 s to a minute); later calls only list a folder. Any number of
    processes may call it at once. Raises `RetryableError` when the jars can't be fetched and
    `ConfigurationError` without Java or with a PySpark that brings no Ivy.
    """
    folder = folder_of(which, cache)
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".fetch-", dir=folder.parent) as scratch:
            _publish(_fetch(which, Path(scratch), folder, java), folder)
    return sorted(folder.glob("*.jar"))


def folder_of(which: JarSet, cache: Path | None = None) -> Path:
    """The folder of the set's jars, also before they are fetched."""
    return (cache or DEFAULT_CACHE).expanduser().absolute() / which.folder_name


def digest_of(jars: Iterable[Path]) -> str:
    """Return the SHA-256 of a listing of the jars in the form of `sha256sum`, sorted by name."""
    lines = []
    for jar in sorted(jars, key=lambda path: path.name):
        with jar.open("rb") as file:
            lines.append(f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {jar.name}\n")
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def ivy_settings(ivy_cache: Path) -> str:
    """Ivy's settings: one resolver for Maven's central repository, downloads below `ivy_cache`."""
    return (
        '<ivysettings><settings defaultResolver="central"/>'
        f"<caches defaultCacheDir={quoteattr(str(ivy_cache))}/>"
        '<resolvers><ibiblio name="central" m2compatible="true"/></resolvers></ivysettings>'
    )


def ivy_module(which: JarSet) -> str:
    """The set as an Ivy module: every dependency by its exact revision."""
    dependencies = "".join(
        f"<dependency org={quoteattr(module.organisation)} name={quoteattr(module.name)}"
        f" rev={quoteattr(module.revision)} transitive={_xml_bool(module.transitive)}"
        f' conf="default->default"{_artifacts(module)}'
        for module in which.modules
    )
    return (
        '<ivy-module version="2.0" xmlns:m="http://ant.apache.org/ivy/maven">'
        f'<info organisation="lakesplice" module={quoteattr(which.name)}/>'
        '<configurations><conf name="default"/></configurations>'
        f"<dependencies>{dependencies}</dependencies></ivy-module>"
    )


def _artifacts(module: Module) -> str:
    """How a dependency ends: a classifier must be named, and then the usual jar must be, too."""
    if not module.classifier:
        return "/>"
    name, classifier = quoteattr(module.name), quoteattr(module.classifier)
    artifact = f'<artifact name={name} type="jar" ext="jar"'
    return f">{artifact}/>{artifact} m:classifier={classifier}/></dependency>"


def _xml_bool(value: bool) -> str:
    return '"true"' if value else '"false"'


def _ivy_jar() -> Path:
    import pyspark

    found = sorted((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"))
    if not found:
        raise ConfigurationError(
            "this PySpark ships no Ivy; install the pyspark of requirements.lock from PyPI",
            pyspark=pyspark.__version__,
        )
    return found[-1]


def _fetch(which: JarSet, scratch: Path, folder: Path, java: str) -> Path:
    """Let Ivy fill `scratch/jars`. It has a cache of its own, since Ivy's isn't safe to share."""
    (scratch / "settings.xml").write_text(ivy_settings(scratch / "ivy"))
    (scratch / "ivy.xml").write_text(ivy_module(which))
    command = [
        *(java, f"-Divy.default.ivy.user.dir={scratch / 'home'}", "-jar", str(_ivy_jar())),
        *("-settings", "settings.xml", "-ivy", "ivy.xml", "-types", "jar", "bundle"),
        # Two jars of one module may differ only in their classifier.
        *("-retrieve", "jars/[artifact]-[revision](-[classifier]).[ext]"),
    ]
    try:
        done = subprocess.run(
            command, cwd=scratch, capture_output=True, text=True, timeout=FETCH_SECONDS_MAX
        )
    except FileNotFoundError:
        raise ConfigurationError(
            "Java was not found; install a JDK or JRE of 17 or later and put it on the PATH",
            java=java,
        ) from None
    except subprocess.TimeoutExpired:
        raise _unfetched(which, folder, f"no answer within {FETCH_SECONDS_MAX} s") from None
    names = {path.name for path in (scratch / "jars").glob("*.jar")}
    missing = [module.coordinates for module in which.modules if not names.issuperset(module.jars)]
    if done.returncode or missing:
        raise _unfetched(which, folder, ivy_complaint(done.stdout + done.stderr), missing)
    if which.digest and (found := digest_of((scratch / "jars").glob("*.jar"))) != which.digest:
        raise _unfetched(which, folder, f"their digest is {found}, not {which.digest}")
    return scratch / "jars"


def ivy_complaint(output: str) -> str:
    """The lines of Ivy's output that say what went wrong, or else its last lines; never empty."""
    marks = ("UNRESOLVED", "unresolved dependency", "not found", "FAILED", "ERROR", "Host ")
    lines = [line.strip(" \t:") for line in output.splitlines() if line.strip(" \t:")]
    telling = [line for line in lines if any(mark in line for mark in marks)]
    return "; ".join((telling or lines)[-_LOG_LINES_SHOWN:]) or "Ivy said nothing"


def _unfetched(
    which: JarSet, folder: Path, reason: str, missing: list[str] | None = None
) -> RetryableError:
    return RetryableError(
        f"the {which.name} jars could not be fetched; connect to Maven's central repository and"
        f" try again, or copy the folder from a machine that has it",
        folder=str(folder),
        missing=missing or [module.coordinates for module in which.modules],
        reason=reason,
    )


def _publish(filled: Path, folder: Path) -> None:
    try:
        filled.rename(folder)
    except OSError:
        # Another process was first; its files are the same.
        if not folder.is_dir():
            raise
        shutil.rmtree(filled, ignore_errors=True)


def main(arguments: list[str]) -> int:
    """Fetch sets into the given folder and report it; `CACHE [JAVA [SET ...]]`, by default all
    sets.
    """
    cache = Path(arguments[0]) if arguments else None
    java = arguments[1] if len(arguments) > 1 else "java"
    unknown = set(arguments[2:]) - {which.name for which in ALL}
    if unknown:
        print(f"  no such jars: {', '.join(sorted(unknown))}", file=sys.stderr)
        return 1
    for which in ALL:
        if arguments[2:] and which.name not in arguments[2:]:
            continue
        if not folder_of(which, cache).is_dir():
            print(f"  fetching the {which.name} jars", flush=True)
        try:
            ensure_jars(which, cache, java=java)
        except (RetryableError, ConfigurationError) as error:
            print(f"  {error}", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
