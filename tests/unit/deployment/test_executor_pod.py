"""What an executor pod runs: the command of Spark's own entry point, from the same variables."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from lakesplice.spark.executor_pod import executor_command

VARIABLES = {
    "SPARK_JAVA_OPT_10": "-Dtenth=yes",
    "SPARK_JAVA_OPT_2": "-Dsecond=a b",
    "SPARK_EXECUTOR_MEMORY": "1024m",
    "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@10.0.0.1:7078",
    "SPARK_EXECUTOR_ID": "3",
    "SPARK_EXECUTOR_CORES": "2",
    "SPARK_APPLICATION_ID": "spark-1",
    "SPARK_EXECUTOR_POD_IP": "10.0.0.2",
    "SPARK_RESOURCE_PROFILE_ID": "0",
    "SPARK_EXECUTOR_POD_NAME": "lake-exec-3",
}


def test_an_executor_gets_what_spark_says_in_variables() -> None:
    jars = Path(pyspark.__file__).parent / "jars"
    assert executor_command(VARIABLES) == [
        "java",
        "-Dsecond=a b",
        "-Dtenth=yes",
        "-Xms1024m",
        "-Xmx1024m",
        *("-cp", f"{jars}/*"),
        "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
        *("--driver-url", "spark://CoarseGrainedScheduler@10.0.0.1:7078"),
        *("--executor-id", "3", "--cores", "2", "--app-id", "spark-1"),
        *("--hostname", "10.0.0.2", "--resourceProfileId", "0", "--podName", "lake-exec-3"),
    ]


def test_java_and_further_classes_are_where_the_variables_say() -> None:
    more = {**VARIABLES, "JAVA_HOME": "/opt/java", "SPARK_CLASSPATH": "/opt/more.jar"}
    command = executor_command(more)
    assert command[0] == "/opt/java/bin/java"
    assert command[command.index("-cp") + 1].endswith(":/opt/more.jar")


@pytest.mark.parametrize("missing", ["SPARK_DRIVER_URL", "SPARK_EXECUTOR_MEMORY"])
def test_an_executor_that_spark_did_not_start_refuses_to_run(missing: str) -> None:
    with pytest.raises(KeyError, match=missing):
        executor_command({name: at for name, at in VARIABLES.items() if name != missing})
