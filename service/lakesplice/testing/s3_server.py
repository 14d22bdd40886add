"""A real S3 server on this machine: versitygw over a folder, built once from its source."""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakesplice.testing.go_programs import built

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS, SECRET, REGION = "tester", "tester-secret", "us-east-1"
_HOST = "127.0.0.1"
_START_SECONDS_MAX, _STOP_SECONDS = 30.0, 10.0


class S3Server:
    """The server as a context manager: ready when entered, gone when left; its data stays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def endpoint(self) -> str:
        """Where it listens."""
        return f"http://{_HOST}:{self.port}"

    def __enter__(self) -> Self:
        data = self._folder / "data"
        data.mkdir(parents=True, exist_ok=True)
        with socket.socket() as probe:
            probe.bind((_HOST, 0))
            self.port = probe.getsockname()[1]
        keys = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        command = [str(binary()), "--port", f"{_HOST}:{self.port}", "--region", REGION]
        with (self._folder / "server.log").open("ab") as log:
            self._process = subprocess.Popen(
                [*command, "posix", str(data)],
                stdout=log,
                stderr=log,
                env={**os.environ, **keys},
            )
        try:
            self._await_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def make_bucket(self) -> str:
        """Make a bucket of a new name and return it."""
        name = f"lake-{secrets.token_hex(6)}"
        client(self.endpoint).create_bucket(Bucket=name)
        return name

    def _await_ready(self) -> None:
        ends = time.monotonic() + _START_SECONDS_MAX
        while True:
            try:
                client(self.endpoint).list_buckets()
                return
            except (BotoCoreError, ClientError):
                assert self._process is not None
                if self._process.poll() is not None or time.monotonic() > ends:
                    log = (self._folder / "server.log").read_text()
                    raise RuntimeError(f"the S3 server didn't start:\n{log[-2000:]}") from None
                time.sleep(0.1)


def options(endpoint: str) -> dict[str, str]:
    """Options of a lake on the server, or on a proxy before it."""
    return {
        "aws_endpoint": endpoint,
        "aws_region": REGION,
        "aws_access_key_id": ACCESS,
        "aws_secret_access_key": SECRET,
        "aws_allow_http": "true",
    }


def client(endpoint: str) -> Any:
    """A client of the server that doesn't try again."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS,
        aws_secret_access_key=SECRET,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def binary() -> Path:
    """The server's binary, built if it isn't there yet."""
    program = built(MODULE, VERSION)
    if program is None:
        raise RuntimeError("Go is needed to build the S3 server; run `make setup`")
    return program
