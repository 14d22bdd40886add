"""How the driver's JVM is started: what other users of the machine can see of it, and without
Java.
"""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.running import environment

# In a process of its own: a JVM that runs already is never started again.
SHOWN = """
import sys
from pathlib import Path
from pyspark import SparkContext
from lakesplice.spark.jvm import start_jvm
value = f"hunter{1 + 1} with \\u00fcmlaut, \\\\ = : # ! and 'quotes'\\U0001f600"
start_jvm("local[1]", {"spark.hadoop.account.key.x": value, "spark.driver.memory": "300m"})
lines = [file.read_bytes() for file in Path("/proc").glob("[0-9]*/cmdline") if file.is_file()]
assert any(b"-Xmx300m" in line for line in lines)
assert not any(value[:7].encode() in line for line in lines)
properties = SparkContext._jvm.java.lang.System
assert properties.getProperty("spark.hadoop.account.key.x") == value
assert not list(Path(sys.argv[1]).glob("lakesplice-spark-*"))
print("hidden")

from lakesplice.spark.session import LOG_FILES
java = SparkContext._jvm
log4j = java.org.apache.logging.log4j
for file in LOG_FILES.values():
    context = log4j.core.LoggerContext(file.name, None, java.java.net.URI(file.as_uri()))
    context.start()
    event = log4j.core.impl.Log4jLogEvent.newBuilder()
    event.setLoggerName("org.apache.spark.Executor").setLevel(log4j.Level.ERROR)
    event.setMessage(log4j.message.SimpleMessage('a "task" died'))
    event.setThrown(java.java.lang.IllegalStateException("no disk"))
    layout = context.getConfiguration().getAppender("console").getLayout()
    print(repr(layout.toSerializable(event.build())))
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a process with a JVM wrote; 4 s, and only the operating system and a JVM can tell."""
    tmp_path = tmp_path_factory.mktemp("jvm")
    chosen = {**environment(), "TMPDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", SHOWN, str(tmp_path)],
        env=chosen,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_no_option_of_spark_stands_in_the_list_of_processes(written: list[str]) -> None:
    assert written[0] == "hidden"


def test_the_jvm_writes_lines_like_those_of_the_service(written: list[str]) -> None:
    text, object_ = (ast.literal_eval(line) for line in written[1:])
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"
    line = rf"{stamp} \[error    \] a \"task\" died +\[org\.apache\.spark\.Executor\]\nno disk\n?"
    assert re.fullmatch(line, text), text
    entry = json.loads(object_)
    assert object_.count("\n") == 1
    assert re.fullmatch(stamp, entry.pop("timestamp"))
    assert "no disk" in entry.pop("exception")
    assert entry == {
        "event": 'a "task" died',
        "level": "error",
        "logger": "org.apache.spark.Executor",
    }


NO_JAVA = """
from lakesplice.spark.jvm import start_jvm
from lakesplice.errors import ConfigurationError
try:
    start_jvm("local[1]", {})
except ConfigurationError as error:
    print(error)
"""


@pytest.mark.parametrize("home", [None, "/nowhere"])
def test_without_java_the_message_says_to_install_it(tmp_path: Path, home: str | None) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "dirname", "env", "id", "ls", "sed", "tr", "cat", "uname", "basename"):
        for place in ("/usr/bin", "/bin"):
            if Path(place, name).exists():
                (folder / name).symlink_to(Path(place, name))
                break
    chosen = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"}
    chosen |= {"PATH": str(folder)} | ({} if home is None else {"JAVA_HOME": home})
    done = subprocess.run(
        [sys.executable, "-c", NO_JAVA], env=chosen, capture_output=True, text=True, timeout=120
    )
    assert "install a JDK" in done.stdout, done.stderr
