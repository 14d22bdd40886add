"""The chart, rendered by Helm, and a matrix of values that uses all its features."""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from tests.support import tools
from tests.support.machine import ROOT

CHART = ROOT / "helm" / "lakesplice"
RELEASE, NAMESPACE = "lake", "cdc"
KUBERNETES = ("1.25", "1.32")
Values = dict[str, Any]
Manifests = dict[str, dict[str, Any]]

LEAST: Values = {
    "settings": {"kafka": {"bootstrap_servers": "kafka:9092", "topic_pattern": "a\\.b"}}
}
SECRET = {"LAKESPLICE_KAFKA__OPTIONS__SASL_JAAS_CONFIG": {"name": "kafka-client", "key": "jaas"}}
MATRIX: dict[str, Values] = {
    "least": {},
    "two-on-a-shared-volume": {
        "replicas": 2,
        "persistence": {"accessModes": ["ReadWriteMany"], "storageClass": "nfs", "keep": False},
        "podDisruptionBudget": {"enabled": True},
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app.kubernetes.io/name": "lakesplice"}},
            }
        ],
    },
    "object-store-and-executors": {
        "settings": {
            "lake": {"root": "s3://bucket/lake"},
            "spark": {"master": "k8s://https://kubernetes.default.svc"},
        },
        "persistence": {"enabled": False},
        "rbac": {"executorPods": True},
        "executors": {"nodeSelector": {"disk": "fast"}, "tolerations": [{"operator": "Exists"}]},
        "networkPolicy": {
            "enabled": True,
            "metricsFrom": [{"namespaceSelector": {"matchLabels": {"team": "watch"}}}],
            "egress": [{"ports": [{"port": 443}]}],
        },
        "secretEnv": SECRET,
        "extraEnv": [{"name": "AWS_REGION", "value": "eu-west-1"}],
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "serviceAccount": {"annotations": {"example.org/role": "lake"}, "automountToken": True},
    },
    "secrets-and-files": {
        "settings": {
            "kafka": {
                "options": {
                    "security.protocol": "SASL_SSL",
                    "request.timeout.ms": 30000,
                    "allow.auto.create.topics": False,
                }
            },
            "tables": [{"match": "shop.*", "columns": {"id": "bigint"}}],
        },
        "secretEnv": SECRET,
        "secretFiles": [{"name": "truststore", "mountPath": "/etc/lakesplice/kafka"}],
        "extraEnv": [{"name": "TZ", "value": "UTC"}],
        "extraEnvFrom": [{"secretRef": {"name": "more"}}],
        "imagePullSecrets": [{"name": "registry"}],
        "image": {"digest": f"sha256:{'0' * 64}"},
    },
    "another-port-and-long-stops": {
        "settings": {
            "metrics": {"port": 9000},
            "stop_timeout": "1h",
            "kafka": {"request_timeout_seconds": "1m30s", "offsets_per_batch_max": 100_000_000},
            "compaction": {"bytes_max": 1_000_000_000},
        },
        "scratch": {"sizeLimit": "", "medium": ""},
        "stopMarginSeconds": 600,
    },
    "no-stop-and-memory": {
        "settings": {"stop_timeout": 0, "kafka": {"request_timeout_seconds": 1.5}},
        "scratch": {"sizeLimit": "2Gi", "medium": "Memory"},
        "persistence": {"existingClaim": "lake-of-last-year"},
        "serviceAccount": {"create": False},
        "fullnameOverride": "cdc",
    },
    "watched": {
        "serviceMonitor": {
            "enabled": True,
            "labels": {"release": "prometheus"},
            "authorization": {"credentials": {"name": "lake-page", "key": "token"}},
        },
        "secretEnv": {"LAKESPLICE_METRICS__TOKEN": {"name": "lake-page", "key": "token"}},
        "prometheusRule": {"enabled": True},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Lakes"}},
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "lake", "operator": "Exists"}],
        "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}},
        "priorityClassName": "high",
        "podAnnotations": {"example.org/team": "data"},
        "podLabels": {"team": "data"},
        "service": {"labels": {"team": "data"}, "annotations": {"example.org/a": "b"}},
    },
}
Render = Callable[..., subprocess.CompletedProcess[str]]


def over(below: Values, above: Values) -> Values:
    """As Helm lays values over the chart's own."""
    merged = dict(below)
    for name, value in above.items():
        old = merged.get(name)
        merged[name] = (
            over(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
        )
    return merged


def renderer(folder: Path) -> Render:
    """What renders the chart with values, for a version of Kubernetes; a skip without Helm."""
    helm, count = tools.helm(), itertools.count()

    def run(values: Values, version: str = KUBERNETES[0]) -> subprocess.CompletedProcess[str]:
        file = folder / f"{next(count)}.yaml"
        file.write_text(yaml.safe_dump(values))
        options = ["--namespace", NAMESPACE, "--kube-version", f"{version}.0"]
        command = [str(helm), "template", RELEASE, str(CHART), *options, "--values", str(file)]
        return subprocess.run(command, capture_output=True, text=True, timeout=60)

    return run


def pod(manifests: Manifests) -> dict[str, Any]:
    """The driver's pod."""
    spec: dict[str, Any] = manifests["Deployment"]["spec"]["template"]["spec"]
    return spec
