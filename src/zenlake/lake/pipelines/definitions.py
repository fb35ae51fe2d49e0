"""The tables, views, sinks and flows that the files of a pipeline define.

    definitions = PipelineDefinitions()
    with graph_element_registration_context(definitions):
        …                                      # import the files
    definitions.demand_complete()

`pyspark.pipelines` hands each definition to the registry of the context that it is called in. This
is such a registry, as Spark's own is, so the files are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, final

from pyspark.pipelines.flow import AutoCdcFlow, Flow
from pyspark.pipelines.graph_element_registry import GraphElementRegistry
from pyspark.pipelines.output import MaterializedView, Output, Sink, StreamingTable, TemporaryView
from pyspark.pipelines.source_code_location import SourceCodeLocation

from zenlake.config.nearest import nearest
from zenlake.errors import LocalError
from zenlake.lake.model.config import FIXED

__all__ = ["AnyFlow", "PipelineDefinitions", "PipelineError", "plain_name"]

AnyFlow = Flow | AutoCdcFlow

MOST_ELEMENTS: Final = 1000
"""Tables, views, sinks and flows of one pipeline."""


class PipelineError(LocalError):
    """A pipeline that is defined wrongly; the message begins with the file and the line."""

    def __init__(self, message: str, at: SourceCodeLocation | str | None = None) -> None:
        """`at`: where in the user's files."""
        place = at if isinstance(at, str) else _place(at)
        super().__init__(f"{place}: {message}" if place else message)


@final
class PipelineDefinitions(GraphElementRegistry):
    """Everything that one pipeline defines, in the order in which its files say it."""

    def __init__(self, folder: Path) -> None:
        """Nothing yet; messages name files as they are called in this folder."""
        self._folder = folder
        self.outputs: dict[str, Output] = {}
        self.flows: dict[str, AnyFlow] = {}
        self.sql_files: list[tuple[str, Path]] = []

    def register_output(self, output: Output) -> None:
        """Take a table, a view or a sink."""
        at = self._inside(output.source_code_location)
        name = plain_name(output.name, at)
        before = self.outputs.get(name)
        if before is not None:
            first = _place(before.source_code_location)
            raise PipelineError(
                f"'{name}' is defined twice, first in {first}; give one of them another name", at
            )
        if name in FIXED:
            raise PipelineError(
                f"'{name}' is a table that the lake fills itself; choose another name",
                at,
            )
        self._demand_room(at)
        self.outputs[name] = replace(output, name=name, source_code_location=at)

    def register_flow(self, flow: Flow) -> None:
        """Take what fills a table or a sink, or defines a view."""
        at = self._inside(flow.source_code_location)
        name, target = plain_name(flow.name, at), plain_name(flow.target, at)
        self._add(name, replace(flow, name=name, target=target, source_code_location=at))

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        """Take a flow that applies changes to a table."""
        at = self._inside(flow.source_code_location)
        name, target = plain_name(flow.name, at), plain_name(flow.target, at)
        self._add(name, replace(flow, name=name, target=target, source_code_location=at))

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        """Take a file of SQL; `sql_definitions` reads its statements."""
        self.sql_files.append((sql_text, file_path))

    def flows_of(self, name: str) -> list[AnyFlow]:
        """Return the flows into a table or a sink, or the one that defines a view."""
        return [flow for flow in self.flows.values() if flow.target == name]

    def tables(self) -> Mapping[str, StreamingTable | MaterializedView]:
        """Return the outputs that are tables of the lake."""
        return {
            name: output
            for name, output in self.outputs.items()
            if isinstance(output, StreamingTable | MaterializedView)
        }

    def demand_complete(self) -> None:
        """Raise `PipelineError` if a flow has no target, or a table has none of its flows."""
        for flow in self.flows.values():
            target = self.outputs.get(flow.target)
            at = flow.source_code_location
            if target is None:
                meant = nearest(flow.target, self.outputs)
                hint = (
                    f"did you mean '{meant}'?"
                    if meant
                    else (f"define it: dp.create_streaming_table('{flow.target}')")
                )
                raise PipelineError(
                    f"the flow '{flow.name}' writes to '{flow.target}', which no file defines; "
                    f"{hint}",
                    at,
                )
            if isinstance(target, MaterializedView | TemporaryView) and flow.name != flow.target:
                raise PipelineError(
                    f"the flow '{flow.name}' writes to the view '{flow.target}', whose query is "
                    "all that fills it; flows write to streaming tables and sinks",
                    at,
                )
            if isinstance(flow, AutoCdcFlow) and not isinstance(target, StreamingTable):
                raise PipelineError(
                    f"the flow '{flow.name}' applies changes to '{flow.target}', which is no "
                    f"table: define it with dp.create_streaming_table('{flow.target}')",
                    at,
                )
        for name, output in self.outputs.items():
            flows = self.flows_of(name)
            if not flows and not isinstance(output, Sink):
                raise PipelineError(
                    f"no flow writes to '{name}'; add one: @dp.append_flow(target='{name}')",
                    output.source_code_location,
                )
            if len(flows) > 1 and any(isinstance(flow, AutoCdcFlow) for flow in flows):
                raise PipelineError(
                    f"'{name}' gets changes applied, and other flows write to it; "
                    "give each a table of its own",
                    output.source_code_location,
                )

    def _add(self, name: str, flow: AnyFlow) -> None:
        before = self.flows.get(name)
        if before is not None:
            raise PipelineError(
                f"there are two flows '{name}', the first in "
                f"{_place(before.source_code_location)}; give one of them another name",
                flow.source_code_location,
            )
        self._demand_room(flow.source_code_location)
        self.flows[name] = flow

    def _inside(self, at: SourceCodeLocation) -> SourceCodeLocation:
        path = Path(at.filename)
        if path.is_absolute() and path.is_relative_to(self._folder):
            path = path.relative_to(self._folder)
        return SourceCodeLocation(str(path), at.line_number)

    def _demand_room(self, at: SourceCodeLocation) -> None:
        if len(self.outputs) + len(self.flows) >= MOST_ELEMENTS:
            raise PipelineError(
                f"a pipeline has at most {MOST_ELEMENTS} tables, views, sinks and flows; "
                "make it two pipelines",
                at,
            )


def plain_name(name: Any, at: SourceCodeLocation | str | None = None) -> str:
    """Return the name of a table without its database; raises if a lake can have no such table."""
    parts = str(name).replace("`", "").split(".")
    last = parts[-1]
    if not last.replace("_", "a").isalnum() or last.startswith("_") or len(last) > 200:
        raise PipelineError(
            f"'{name}' cannot be the name of a table; use letters, digits and '_'", at
        )
    return last


def _place(at: SourceCodeLocation | None) -> str:
    if at is None or not at.filename:
        return ""
    return f"{at.filename}:{at.line_number}" if at.line_number else str(at.filename)
