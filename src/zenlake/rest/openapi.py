"""The OpenAPI description of HTTP, from which the reference page is made too."""

from __future__ import annotations

from typing import Any, Final

__all__ = ["SAMPLE", "document"]

SAMPLE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["key", "value", "encoding", "timestamp"],
    "properties": {
        "key": {"type": "string", "description": "The key; `ERROR` for an error reply."},
        "value": {
            "description": "null if empty, JSON if the encoding is JSON, a text if it is text, "
            "else base64."
        },
        "encoding": {"type": "string"},
        "timestamp": {"type": ["string", "null"], "description": "`<NTP64>/<id of the clock>`"},
    },
}
TEXT: Final = {"text/plain": {"schema": {"type": "string"}}}
TABLES: Final = (
    "text/csv",
    "application/jsonl",
    "application/vnd.apache.arrow.stream",
    "application/vnd.apache.parquet",
)
REFUSALS: Final = {
    "400": "The key expression or a parameter is no such; the text says why.",
    "401": "Credentials are needed: `Authorization: Bearer TOKEN`, or Basic.",
    "403": "A rule of access control denies it, or the host or the origin is not this node's.",
    "500": "It failed; the text says why.",
    "503": "Too many requests or streams at a time, or no storage acknowledged.",
}


def _answer(description: str, content: dict[str, Any] | None = None) -> dict[str, Any]:
    return {"description": description, **({"content": content} if content else {})}


def _refusals(*more: tuple[str, str]) -> dict[str, Any]:
    return {
        code: _answer(words, TEXT) for code, words in sorted({**REFUSALS, **dict(more)}.items())
    }


def _query(words: str, *, body: bool) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": words,
        "description": "The query string is the parameters of the selector, separated by `;`. "
        "`_time=[…]` asks for a range of time. With `Accept: text/event-stream` it is a "
        "subscription: events PUT and DELETE with a sample each, SKIPPED if this client is too "
        "slow; `Last-Event-ID` goes on after that event, from a journal.",
        "parameters": [
            {
                "name": "_raw",
                "in": "query",
                "description": "The payload of the first reply, instead of JSON.",
                "schema": {"type": "string"},
                "allowEmptyValue": True,
            },
            {
                "name": "_download",
                "in": "query",
                "description": "The answer as a file.",
                "schema": {"type": "string", "enum": ["csv", "jsonl", "arrow", "parquet"]},
            },
            {
                "name": "_cut",
                "in": "query",
                "description": "Payloads of events with more bytes than this are left out.",
                "schema": {"type": "integer", "minimum": 0, "maximum": 99999999999},
            },
            {
                "name": "Last-Event-ID",
                "in": "header",
                "description": "The id of the last event that was seen.",
                "schema": {"type": "string"},
            },
        ],
        "responses": {
            "200": {
                "description": "All replies; `zenlake-truncated` says if there were more.",
                "headers": {"zenlake-truncated": {"schema": {"type": "string"}}},
                "content": {
                    "application/json": {
                        "schema": {
                            "type": "array",
                            "items": {"$ref": "#/components/schemas/Sample"},
                        }
                    },
                    "text/html": {"schema": {"type": "string"}},
                    "text/event-stream": {"schema": {"type": "string"}},
                    **{kind: {} for kind in TABLES},
                    "*/*": {},
                },
            },
            **_refusals(("413", "The body is too long.")),
        },
    }
    if body:
        operation["requestBody"] = {
            "description": "A payload that travels with the query; Content-Type is its encoding.",
            "content": {"*/*": {}},
        }
    return operation


def _put(words: str) -> dict[str, Any]:
    return {
        "summary": words,
        "parameters": [
            {
                "name": "_ack_put",
                "in": "query",
                "description": "Answer when a storage has it for good, with the timestamp.",
                "schema": {"type": "string"},
                "allowEmptyValue": True,
            }
        ],
        "requestBody": {
            "description": "The payload; Content-Type is its encoding.",
            "content": {"*/*": {}},
        },
        "responses": {
            "200": _answer("Published.", {"application/json": {"schema": {"type": "object"}}}),
            **_refusals(("413", "The body is too long.")),
        },
    }


def document() -> dict[str, Any]:
    """The description, as JSON values."""
    from zenlake import __version__

    page = {"text/plain": {"schema": {"type": "string"}}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "zenlake over HTTP",
            "version": __version__,
            "description": "Every key of the bus is a resource. As Eclipse Zenoh's REST plugin, "
            "and more.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": {
            "/{key}": {
                "parameters": [
                    {
                        "name": "key",
                        "in": "path",
                        "required": True,
                        "description": "A key expression, URL-encoded; may have slashes and "
                        "wildcards. `@/local` is this node's part of the admin space.",
                        "schema": {"type": "string"},
                        "allowReserved": True,
                    }
                ],
                "get": _query("Query, or subscribe", body=False),
                "post": _query("Query with a payload", body=True),
                "put": _put("Publish a value"),
                "patch": _put("Publish a value, as PUT"),
                "delete": {
                    "summary": "Publish that the value is deleted",
                    "responses": {"200": _answer("Published."), **_refusals()},
                },
            },
            "/metrics": {
                "get": {
                    "summary": "Metrics of the node, OpenMetrics",
                    "responses": {
                        "200": _answer("The metrics.", {"application/openmetrics-text": {}}),
                        **_refusals(),
                    },
                }
            },
            "/health": {
                "get": {
                    "summary": "Whether the node runs; without credentials",
                    "security": [],
                    "responses": {
                        "200": _answer("It does.", page),
                        "403": _answer(REFUSALS["403"], page),
                        "503": _answer(
                            "It does not, or a storage is not open or written; the text says why.",
                            page,
                        ),
                    },
                }
            },
            "/ready": {
                "get": {
                    "summary": "Whether the node is open; without credentials",
                    "security": [],
                    "responses": {
                        "200": _answer("It is.", page),
                        "403": _answer(REFUSALS["403"], page),
                        "503": _answer("Not yet.", page),
                    },
                }
            },
            "/@ws": {
                "get": {
                    "summary": "The WebSocket of the web page: the remote API (zenoh-ts)",
                    "responses": {
                        "101": _answer("The connection speaks WebSocket from now on."),
                        "426": _answer("It was not asked for a WebSocket.", page),
                        **_refusals(),
                    },
                }
            },
            "/status": {
                "get": {
                    "summary": "The node, its sessions and its services",
                    "responses": {
                        "200": _answer(
                            "The status.", {"application/json": {"schema": {"type": "object"}}}
                        ),
                        **_refusals(),
                    },
                }
            },
        },
        "components": {
            "schemas": {"Sample": SAMPLE},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    }
