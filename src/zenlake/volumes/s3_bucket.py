"""The requests of a volume to a bucket: list, read, write and delete objects.

Errors are those of volumes: a store that does not answer is unreachable, and asked again.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

import boto3
import botocore.config
import botocore.exceptions

from zenlake.volumes.contract import RecordsRefused, VolumeError, VolumeUnreachable

__all__ = ["AT_ONCE", "S3Bucket"]

T = TypeVar("T")

#: Requests that are made at the same time.
AT_ONCE: Final = 8
#: Names that the protocol allows in one request to delete.
_DELETED: Final = 1000

#: Sessions of boto3 are for one thread at a time.
_making: Final = threading.Lock()


class S3Bucket:
    """The objects of a bucket whose names have one beginning, which is left out here."""

    def __init__(self, prefix: str, options: Mapping[str, object]) -> None:
        """`options`: those of the volume."""
        self._bucket = str(options["bucket"])
        self._prefix = prefix
        patience = float(str(options["timeout"]))
        region = options.get("region")
        self._client = _client(
            endpoint_url=options.get("url"),
            # Signing needs one, and stores that have no regions take any.
            region_name=region or ("us-east-1" if options.get("url") else None),
            aws_access_key_id=options.get("access_key"),
            aws_secret_access_key=options.get("secret_key"),
            config=botocore.config.Config(
                connect_timeout=patience,
                read_timeout=patience,
                # The storage tries again, and says so.
                retries={"total_max_attempts": 1},
                max_pool_connections=AT_ONCE * 2,
                s3={"addressing_style": "path" if options.get("url") else "auto"},
            ),
        )

    def sizes(self) -> dict[str, int]:
        """The objects that there are, by name, and the bytes that each has."""

        def ask() -> dict[str, int]:
            pages = self._client.get_paginator("list_objects_v2").paginate(
                Bucket=self._bucket, Prefix=self._prefix
            )
            return {
                one["Key"].removeprefix(self._prefix): one["Size"]
                for page in pages
                for one in page.get("Contents", ())
            }

        return self._request(ask)

    def read(self, name: str, start: int, size: int) -> bytes:
        """A range of the bytes of an object."""
        if not size:
            return b""

        def ask() -> bytes:
            reply = self._client.get_object(
                Bucket=self._bucket,
                Key=self._prefix + name,
                Range=f"bytes={start}-{start + size - 1}",
            )
            data: bytes = reply["Body"].read()
            return data

        return self._request(ask)

    def put(self, name: str, data: bytes) -> None:
        """Write an object, whole or not at all."""
        self._request(
            lambda: self._client.put_object(Bucket=self._bucket, Key=self._prefix + name, Body=data)
        )

    def delete(self, names: Sequence[str]) -> None:
        """Delete objects; those that are gone are nothing."""
        for first in range(0, len(names), _DELETED):
            some = [{"Key": self._prefix + name} for name in names[first : first + _DELETED]]
            self._request(
                lambda some=some: self._client.delete_objects(  # type: ignore[misc]
                    Bucket=self._bucket, Delete={"Objects": some, "Quiet": True}
                )
            )

    def close(self) -> None:
        """Let the connections go."""
        self._client.close()

    def _request(self, call: Callable[[], T]) -> T:
        try:
            return call()
        except botocore.exceptions.ClientError as error:
            if error.response.get("Error", {}).get("Code") == "EntityTooLarge":
                raise RecordsRefused(f"bucket '{self._bucket}': {error}") from error
            code = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
            kind = VolumeUnreachable if code >= 500 else VolumeError
            raise kind(f"bucket '{self._bucket}': {error}") from error
        except botocore.exceptions.BotoCoreError as error:
            raise VolumeUnreachable(f"bucket '{self._bucket}': {error}") from error


@functools.cache
def _session() -> Any:
    """One for all volumes: it reads what services there are, which takes a while."""
    return boto3.session.Session()


def _client(**settings: object) -> Any:
    with _making:
        return _session().client("s3", **settings)
