"""Starts the JVM of the driver with its properties in a file, since every user can see a command
line.
"""

from __future__ import annotations

import os
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from pyspark import SparkContext
from pyspark.errors import PySparkRuntimeError
from pyspark.java_gateway import launch_gateway

from lakesplice.errors import ConfigurationError

_ARGUMENTS = "PYSPARK_SUBMIT_ARGS"
# PySpark's own default, which has to be last.
_SHELL = "pyspark-shell"
# For code that ran this often Java's second compiler makes faster code: ten times Java's defaults.
# By these, it takes a fifth of the processor while a service starts, for code that soon rests.
_COMPILED_AGAIN_AFTER = {
    "Tier4InvocationThreshold": 50_000,
    "Tier4MinInvocationThreshold": 6_000,
    "Tier4CompileThreshold": 150_000,
    "Tier4BackEdgeThreshold": 400_000,
}
QUICK_START = " ".join(f"-XX:{name}={count}" for name, count in _COMPILED_AGAIN_AFTER.items())
"""Options of a JVM that has to start quickly, and still gets faster if it runs for long."""
_starting = threading.Lock()


def start_jvm(master: str, properties: Mapping[str, str], written: IO[bytes] | None = None) -> Any:
    """Start the JVM with Spark's properties, unless one runs in this process; return py4j's view of
    it. What it writes to standard error goes to `written`, if that is given.

    The properties are in a file that only this user can read and that is deleted when this returns.
    Blocks for some seconds; safe from several threads. `ConfigurationError` if there is no Java, or
    it doesn't start.
    """
    with _starting:
        return _jvm_with(master, properties, written)


def _jvm_with(master: str, properties: Mapping[str, str], written: IO[bytes] | None) -> Any:
    given = os.environ.get(_ARGUMENTS)
    with tempfile.TemporaryDirectory(prefix="lakesplice-spark-") as folder:
        file = Path(folder, "spark.properties")
        file.touch(mode=0o600)
        text = properties_text({"spark.master": master, **properties})
        file.write_text(text, encoding="utf-8")
        own = f"--load-spark-defaults --properties-file '{file}'"
        os.environ[_ARGUMENTS] = f"{own} {given or _SHELL}"
        try:
            if SparkContext._jvm is None:  # without a command line there is no public way
                launch: Any = launch_gateway  # PySpark leaves it without types
                gateway = launch(None, None if written is None else {"stderr": written})
                SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001
        except (PySparkRuntimeError, FileNotFoundError) as error:
            raise ConfigurationError(
                "Java did not start; install a JDK or JRE of 17 or later, and put it on the PATH or"
                " name its folder in JAVA_HOME; see also what Spark wrote above",
                java_home=os.environ.get("JAVA_HOME"),
            ) from error
        finally:
            if given is None:
                del os.environ[_ARGUMENTS]
            else:
                os.environ[_ARGUMENTS] = given
    return SparkContext._jvm


def properties_text(properties: Mapping[str, str]) -> str:
    """Return properties in the form from which Java's `Properties.load` reads the same
    characters.
    """
    return "".join(f"{_escaped(name)}={_escaped(value)}\n" for name, value in properties.items())


def _escaped(text: str) -> str:
    return "".join(map(_escape, text))


def _escape(char: str) -> str:
    if char.isascii() and (char.isalnum() or char in "._-/,"):
        return char
    units = char.encode("utf-16-be")
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))
