"""The reference page of HTTP, made from its OpenAPI description and its settings."""

from __future__ import annotations

import sys
from pathlib import Path

from zenlake.config.declare import Key, section_of
from zenlake.config.model_remote import RemoteApi
from zenlake.config.model_web import Rest
from zenlake.rest.openapi import SAMPLE, document

__all__ = ["reference", "settings_table", "write"]


def settings_table(made_of: type) -> list[str]:
    """The keys of a section, as rows of a Markdown table."""
    lines = ["| key | default | effect |", "|---|---|---|"]
    for name, key in section_of(made_of).keys.items():
        lines.append(f"| `{name}` | {_default(key)} | {key.doc.replace('|', chr(92) + '|')} |")
    return [*lines, ""]


def _default(key: Key) -> str:
    if key.required:
        return "required"
    written = key.written()
    return f"`{written}`" if written not in (None, []) else "none"


def reference() -> str:
    """The reference page of HTTP, as Markdown."""
    description = document()
    lines = [
        "# HTTP",
        "",
        "<!-- Generated from `zenlake.rest.openapi`; change that, and run `make docs`. -->",
        "",
        "`plugins/rest/http_port` or `--rest-http-port` opens it; "
        "[the how-to](../how-to/http.md) has examples. A node serves this description as "
        "`/openapi.json`.",
        "",
    ]
    for path, item in description["paths"].items():
        for one in item.get("parameters", ()):
            lines += [f"## `{path}`", "", f"`{one['name']}`: {one['description']}", ""]
        for method, operation in item.items():
            if method == "parameters":
                continue
            lines += [f"### `{method.upper()} {path}`", "", f"{operation['summary']}.", ""]
            if "description" in operation:
                lines += [operation["description"], ""]
            parameters = operation.get("parameters", ())
            if parameters:
                lines += ["| parameter | in | meaning |", "|---|---|---|"]
                lines += [
                    f"| `{one['name']}` | {one['in']} | {one['description']} |"
                    for one in parameters
                ]
                lines.append("")
            lines += ["| code | meaning |", "|---|---|"]
            for code, answer in operation["responses"].items():
                lines.append(f"| {code} | {answer['description']} |")
            lines.append("")
    lines += ["## A sample", "", "| member | meaning |", "|---|---|"]
    for name, about in SAMPLE["properties"].items():
        lines.append(f"| `{name}` | {about.get('description', about.get('type', ''))} |")
    lines += ["", "## Settings: `plugins/rest`", "", *settings_table(Rest)]
    lines += ["## Settings: `plugins/remote_api`", "", *settings_table(RemoteApi)]
    return "\n".join(lines)


def write(directory: Path) -> None:
    """Put the page into a directory."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "http.md").write_text(reference(), encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference"))
