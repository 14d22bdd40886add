"""Starts an executor of Spark in a pod of the service's own image.

Run: python -m lakesplice.spark.executor_pod executor

Spark's driver describes the executor in variables, for the entry point of an image of Spark's. This
does with them what that entry point does, so that one image serves driver and executors.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark

_BACKEND = "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
_JAVA_OPTION = "SPARK_JAVA_OPT_"
_ARGUMENTS = {
    "--driver-url": "SPARK_DRIVER_URL",
    "--executor-id": "SPARK_EXECUTOR_ID",
    "--cores": "SPARK_EXECUTOR_CORES",
    "--app-id": "SPARK_APPLICATION_ID",
    "--hostname": "SPARK_EXECUTOR_POD_IP",
    "--resourceProfileId": "SPARK_RESOURCE_PROFILE_ID",
    "--podName": "SPARK_EXECUTOR_POD_NAME",
}


def executor_command(variables: Mapping[str, str]) -> list[str]:
    """Return the command that starts the executor that these variables describe; `KeyError` if
    they lack one that Spark sets.
    """
    home = variables.get("JAVA_HOME")
    given = [name for name in variables if name.startswith(_JAVA_OPTION)]
    given.sort(key=lambda name: int(name.removeprefix(_JAVA_OPTION)))
    memory = variables["SPARK_EXECUTOR_MEMORY"]
    classes = [f"{Path(pyspark.__file__).parent / 'jars'}/*", variables.get("SPARK_CLASSPATH", "")]
    return [
        f"{home}/bin/java" if home else "java",
        *(variables[name] for name in given),
        f"-Xms{memory}",
        f"-Xmx{memory}",
        *("-cp", ":".join(filter(None, classes))),
        _BACKEND,
        *(part for name, key in _ARGUMENTS.items() for part in (name, variables[key])),
    ]


if __name__ == "__main__":
    if sys.argv[1:] != ["executor"]:
        sys.exit("Spark starts this with the argument `executor`; nothing else can be done here")
    command = executor_command(os.environ)
    os.execvp(command[0], command)  # noqa: S606  # the executor takes this process's place
