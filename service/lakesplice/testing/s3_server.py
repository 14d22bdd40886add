"""A real S3 server on this machine: versitygw over a folder, built once from its source."""

from __future__ import annotations

import json
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from lakesplice.testing.go_programs import built
from lakesplice.testing.servers.process import HOST, LocalServer, free_port

MODULE, VERSION = "github.com/versity/versitygw/cmd/versitygw", "v1.8.0"
ACCESS, SECRET, REGION = "tester", "tester-secret", "us-east-1"
_START_SECONDS_MAX, _COMMAND_SECONDS_MAX = 30.0, 30.0


class S3Server(LocalServer):
    """The server; if it is entered again, it has its data, but another port."""

    def __init__(self, folder: Path) -> None:
        super().__init__("the S3 server", folder.absolute() / "server.log")
        self._data = folder.absolute() / "data"
        self._users = folder.absolute() / "users"
        self.port = 0

    @property
    def endpoint(self) -> str:
        """The server's address."""
        return f"http://{HOST}:{self.port}"

    def start(self) -> None:
        """See `LocalServer.start`."""
        if self.is_running:
            return
        for made in (self._data, self._users):
            made.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        keys = {"ROOT_ACCESS_KEY": ACCESS, "ROOT_SECRET_KEY": SECRET}
        where = ("--port", f"{HOST}:{self.port}", "--region", REGION)
        kept = ("--iam-dir", self._users, "--iam-cache-disable", "posix", self._data)
        self._run([binary(), *where, *kept], self._answers, _START_SECONDS_MAX, keys)

    def make_bucket(self) -> str:
        """Create a bucket with a new name and return the name."""
        name = f"lake-{secrets.token_hex(6)}"
        client(self.endpoint).create_bucket(Bucket=name)
        return name

    def make_user(self) -> dict[str, str]:
        """Make a user who may do nothing and return the options of a lake that is theirs."""
        name, secret = f"user-{secrets.token_hex(6)}", secrets.token_hex(16)
        root = ("--access", ACCESS, "--secret", SECRET, "--endpoint-url", self.endpoint)
        user = ("--access", name, "--secret", secret, "--role", "user")
        subprocess.run(
            [binary(), "admin", *root, "create-user", *user],
            check=True,
            capture_output=True,
            timeout=_COMMAND_SECONDS_MAX,
        )
        given = {"aws_access_key_id": name, "aws_secret_access_key": secret}
        return {**options(self.endpoint), **given}

    def allow(self, bucket: str, statements: Sequence[Mapping[str, Any]]) -> None:
        """Give a bucket a policy of these statements, in place of what it had."""
        policy = {"Version": "2012-10-17", "Statement": list(statements)}
        client(self.endpoint).put_bucket_policy(Bucket=bucket, Policy=json.dumps(policy))

    def _answers(self) -> bool:
        try:
            client(self.endpoint).list_buckets()
        except (BotoCoreError, ClientError):
            return False
        return True


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
    """A client of the server that doesn't retry."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=ACCESS,
        aws_secret_access_key=SECRET,
        config=Config(retries={"total_max_attempts": 1}, s3={"addressing_style": "path"}),
    )


def binary() -> Path:
    """The server's binary, which is built if it is missing."""
    program = built(MODULE, VERSION)
    if program is None:
        raise RuntimeError("Go is needed to build the S3 server; run `make setup`")
    return program
