"""A place in a bucket of a real S3 server, with the keys to it in the environment."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import boto3
import pytest

from tests.volumes.servers import s3

SECRET = "wJalrXUtnFEMIwhisper"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> tuple[str, Any]:
    """An address in a bucket that nobody else uses, and a client of it."""
    _, url = s3()
    for name, value in {
        "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": url,
    }.items():
        monkeypatch.setenv(name, value)
    return f"s3://zenlake/{tmp_path.name}/{os.getpid()}", boto3.client("s3", endpoint_url=url)
