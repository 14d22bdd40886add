# The service with everything it needs at run time: Python, a Java 17 JRE, the locked packages and the
# jars that Spark needs for Kafka. Nothing is fetched when it runs, and it writes only to /tmp and to
# the lake, so the root file system may be read-only.
#
#   docker build --tag lakesplice .
#   docker run --volume lake:/lake --volume "$PWD/lakesplice.yaml:/etc/lakesplice/lakesplice.yaml:ro" lakesplice
#
# The base and Debian's packages are pinned: the one by its digest, the others by the day of Debian's
# archive. docs/deployment.md says how to renew both. Any Debian 12 with Python 3.11 and its venv
# module can take the place of the base; with DEBIAN_SNAPSHOT= its own sources of packages are used.
ARG PYTHON_IMAGE=python:3.11.16-slim-bookworm@sha256:a36c24f9cbdf4fd0f52d67f0823eeac19c2028c637cecc392d97f980d4fec56b

# hadolint ignore=DL3006
FROM ${PYTHON_IMAGE} AS runtime
ARG DEBIAN_SNAPSHOT=20261008T000000Z
# The base has no certificates yet, so the archive is read by HTTP; apt checks its signatures. The
# day pins the versions of packages.
# hadolint ignore=DL3008
RUN if [ -n "$DEBIAN_SNAPSHOT" ]; then \
      rm -f /etc/apt/sources.list.d/* \
      && for part in "debian/$DEBIAN_SNAPSHOT bookworm" "debian/$DEBIAN_SNAPSHOT bookworm-updates" \
           "debian-security/$DEBIAN_SNAPSHOT bookworm-security"; do \
           echo "deb [check-valid-until=no] http://snapshot.debian.org/archive/$part main"; \
         done > /etc/apt/sources.list; \
    fi \
 && apt-get update \
 && apt-get install --yes --no-install-recommends openjdk-17-jre-headless tini \
 && rm -rf /var/lib/apt/lists/* \
 && groupadd --gid 10001 lakesplice \
 && useradd --uid 10001 --gid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin lakesplice \
 && install --directory --owner 10001 --group 10001 /lake
ENV PATH=/opt/lakesplice/bin:$PATH \
    LANG=C.UTF-8 \
    PYTHONUNBUFFERED=1

FROM runtime AS build
WORKDIR /build
COPY requirements.lock tools/runtime_lock.py ./
# PySpark comes as source: what builds it is installed before it, and removed at the end.
RUN python3 -m venv /opt/lakesplice \
 && python runtime_lock.py requirements.lock setuptools > setuptools.lock \
 && python runtime_lock.py requirements.lock > runtime.lock \
 && pip install --no-cache-dir --require-hashes --requirement setuptools.lock \
 && pip install --no-cache-dir --require-hashes --no-build-isolation --requirement runtime.lock
COPY pyproject.toml README.md ./
COPY service service
RUN pip install --no-cache-dir --no-deps --no-build-isolation . \
 && pip check \
 && python -m lakesplice.spark.jars /opt/lakesplice/jars java spark-kafka \
 && python -m lakesplice.spark.class_archive /opt/lakesplice/jars \
 && pip uninstall --yes setuptools pip

FROM runtime
LABEL org.opencontainers.image.title="lakesplice" \
      org.opencontainers.image.description="Keeps analytical copies of MySQL tables fresh"
COPY --from=build /opt/lakesplice /opt/lakesplice
# Spark would ask for the address of the host's name, which not every network knows.
ENV LAKESPLICE_SPARK__JARS_DIR=/opt/lakesplice/jars \
    PYTHONDONTWRITEBYTECODE=1 \
    SPARK_LOCAL_IP=127.0.0.1
# By number, so that an orchestrator can tell that it isn't root.
USER 10001:10001
WORKDIR /tmp
EXPOSE 9464
# Spark's workers may outlive their parents: tini reaps them, and passes SIGTERM on to the service alone.
ENTRYPOINT ["/usr/bin/tini", "--", "lakesplice"]
CMD ["run", "--config", "/etc/lakesplice/lakesplice.yaml"]
