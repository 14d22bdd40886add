"""What must never be printed: values by the name they go under, and passwords inside addresses.

Options that are handed on to Kafka, Spark, an object store or a registry are printed only if they
are known to be harmless, by `shown_option`: nobody can list all the names that secrets have there.
Names of our own, in the configuration and in logs, are few; those like a secret's are masked.
"""

from __future__ import annotations

import re

MASK = "********"
MASKED_NAMES = (
    "pass(word|wd|phrase)|pwd|secret|jaas|token|credential|private|signature"
    r"|keystore\.key|user\.info|(access|account|api|customer|encryption|sas|storage)\.?key"
)
"""Part of a secret's name, in any case, with dots for underscores."""
_MASKED = re.compile(MASKED_NAMES, re.IGNORECASE)
_USER_INFO = re.compile(r"(?<=://)[^/@\s]+(?=@)")
# `password=...` inside another value, as a JAAS configuration or a connection string has it.
_ASSIGNED = re.compile(
    r"(?i)\b(password|passwd|secret|token)(\s*[=:]\s*)(\"[^\"]*\"|'[^']*'|[^\s;,&]+)"
)


# Whole names, without `aws.` or `azure.storage.` before them, which writers may leave out: of
# object stores, of Kafka and the schema registry, of Spark.
_SHOWN_NAMES = """
    region default.region endpoint endpoint.url bucket bucket.name account.name container.name
    allow.http allow.invalid.certificates virtual.hosted.style.request skip.signature
    conditional.put copy.if.not.exists checksum.algorithm unsigned.payload s3.express timeout
    use.emulator use.fabric.endpoint
    client.id client.rack client.dns.lookup security.protocol sasl.mechanism
    sasl.kerberos.service.name ssl.protocol ssl.enabled.protocols ssl.cipher.suites ssl.provider
    ssl.truststore.location ssl.truststore.type ssl.keystore.location ssl.keystore.type
    ssl.endpoint.identification.algorithm ssl.ca.location ssl.certificate.location
    ssl.key.location receive.buffer.bytes send.buffer.bytes max.poll.records fetch.min.bytes
    fetch.max.bytes max.partition.fetch.bytes check.crcs metadata.max.age.ms request.timeout.ms
    default.api.timeout.ms session.timeout.ms heartbeat.interval.ms connections.max.idle.ms
    reconnect.backoff.ms reconnect.backoff.max.ms retry.backoff.ms retry.backoff.max.ms
    fetch.max.wait.ms socket.connection.setup.timeout.ms socket.connection.setup.timeout.max.ms
    acks linger.ms batch.size compression.type delivery.timeout.ms max.request.size
    buffer.memory
    spark.ui.enabled spark.ui.port spark.app.name spark.local.dir spark.cores.max
    spark.default.parallelism spark.network.timeout spark.task.cpus spark.task.maxfailures
    spark.pyspark.python spark.pyspark.driver.python spark.eventlog.enabled
    spark.submit.deploymode spark.kubernetes.namespace spark.kubernetes.container.image
    spark.executor.cores spark.executor.instances spark.executor.memory
    spark.executor.memoryoverhead spark.driver.host spark.driver.port spark.driver.bindaddress
    spark.driver.cores spark.driver.maxresultsize spark.driver.memoryoverhead
    spark.blockmanager.port spark.driver.blockmanager.port spark.scheduler.mode
    spark.sql.session.timezone
"""
_SHOWN_OPTIONS = frozenset(_SHOWN_NAMES.split())
_SHOWN_PREFIXES = (
    *("spark.dynamicallocation.", "spark.memory.", "spark.shuffle.", "spark.speculation"),
    *("spark.sql.adaptive.", "spark.sql.execution.arrow.", "spark.sql.shuffle."),
    *("spark.sql.streaming.", "spark.sql.files.", "spark.sql.parquet."),
)


def shown_option(name: str) -> bool:
    """Whether an option that is handed on is known to hold no secret; in any case, with dots or
    underscores.
    """
    plain = name.lower().replace("_", ".")
    for prefix in ("kafka.", "aws.", "azure.storage.", "azure.", "google."):
        plain = plain.removeprefix(prefix)
    return plain in _SHOWN_OPTIONS or (plain.startswith(_SHOWN_PREFIXES) and not is_secret(plain))


def masked_option(name: str, value: str) -> str:
    """Return an option's value as it may be printed: masked unless `shown_option`."""
    return masked_text(value) if shown_option(name) else MASK


def is_secret(name: str) -> bool:
    """Whether a value under this name is to be masked; `ssl.truststore.location` isn't."""
    return _MASKED.search(name.replace("_", ".")) is not None


def masked(name: str, value: str) -> str:
    """Return `value` as it may be printed under `name`."""
    return MASK if is_secret(name) else masked_text(value)


def masked_text(text: str) -> str:
    """Return free text without the passwords in its addresses and assignments."""
    return _ASSIGNED.sub(rf"\1\2{MASK}", _USER_INFO.sub(MASK, text))
