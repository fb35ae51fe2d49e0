"""Policies from the text that people write in configuration files."""

from __future__ import annotations

import json
import warnings

from zenlake.config import Config, ConfigWarning, Settings
from zenlake.routing.policy import Policy

EVERY_MESSAGE = [
    "put",
    "delete",
    "query",
    "reply",
    "declare_subscriber",
    "declare_queryable",
    "liveliness_token",
    "liveliness_query",
    "declare_liveliness_subscriber",
]


def settings_of(**sections: object) -> Settings:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConfigWarning)
        return Config.from_json5(json.dumps(sections)).resolved


def policy_of(**sections: object) -> Policy:
    return Policy.of(settings_of(**sections))


def access_control(
    default: str,
    rules: list[dict[str, object]],
    subjects: list[dict[str, object]],
    policies: list[dict[str, object]],
) -> dict[str, object]:
    return {
        "enabled": True,
        "default_permission": default,
        "rules": rules,
        "subjects": subjects,
        "policies": policies,
    }


def rule(id: str, permission: str, *keys: str, **others: object) -> dict[str, object]:
    base = {"id": id, "permission": permission, "key_exprs": list(keys), "messages": EVERY_MESSAGE}
    return base | others


def subject(id: str, **properties: object) -> dict[str, object]:
    return {"id": id} | properties


def applying(rules: list[str], subjects: list[str], **others: object) -> dict[str, object]:
    return {"rules": rules, "subjects": subjects} | others
