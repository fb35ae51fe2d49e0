"""What the paper demands of each module, and where this implementation stands: a page of the docs.

The paper assigns messages and declarations to three modules. What it forgot to assign is placed
where it is needed; markers and migration are a fourth module. The tests have one function for each
line, named by module and requirement.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Requirement:
    """One line of the table."""

    module: str
    name: str
    means: str

    @property
    def test(self) -> str:
        """The name of its test."""
        return f"test_{self.module.lower()}_{self.name.lower()}"


REQUIREMENTS = (
    Requirement("Core", "Open", "checked in order; repeated until it is answered"),
    Requirement("Core", "Accept", "sent again for the same Open; ignored if it is another's"),
    Requirement("Core", "Close", "answered, with the reason; all declarations end with it"),
    Requirement("Core", "WriteData", "needs no declaration; reaches all whose names match"),
    Requirement("Core", "StreamData", "by id, with the true resource where it differs"),
    Requirement("Core", "BatchedData", "several samples in one message, in order, out and in"),
    Requirement("Core", "Pull", "limits, end marker, final, cancel"),
    Requirement("Core", "Synch", "sets and repairs the reliable channel; answered when asked"),
    Requirement("Core", "AckNack", "mask arithmetic, retransmission"),
    Requirement("Core", "Declare", "transactions, all or nothing; pre-committed or closed"),
    Requirement("Core", "Properties", "prefixes of their bytes; unknown ones are passed over"),
    Requirement("Core", "Lease", "two timers; any message renews; 0 is for ever"),
    Requirement("Discovery", "Scout", "answered if the mask meets ours, over UDP and over TCP"),
    Requirement("Discovery", "Hello", "mask and locators"),
    Requirement("Discovery", "KeepAlive", "sent in silence; moves a session to a new address"),
    Requirement("Discovery", "Ping", "answered at once with the same hash"),
    Requirement("Discovery", "Pong", "gives the round trip; the draft's id 13 is read"),
    Requirement("Discovery", "Publisher", "silent until it has subscribers"),
    Requirement("Discovery", "Subscriber", "push, pull, periodic push, periodic pull"),
    Requirement("Discovery", "Commit", "all declarations since the last, or none"),
    Requirement("Discovery", "Result", "status and the first id that failed, in commit order"),
    Requirement("Discovery", "CommitMode", "property 10: commits wait for results, as told"),
    Requirement("Discovery", "ForgetPublisher", "its samples are no longer announced"),
    Requirement("Discovery", "ForgetSubscriber", "nothing more is sent to it"),
    Requirement("Query", "Resource", "immutable, idempotent, even ids"),
    Requirement("Query", "Selection", "resource, tags and predicate; odd ids"),
    Requirement("Query", "Binding", "two ids for one selection"),
    Requirement("Query", "ForgetResource", "the name stays until its last user is gone"),
    Requirement("Query", "ForgetSelection", "one alias, or the selection with its subscribers"),
    Requirement("Query", "Meta", "children, an id, and properties of a resource"),
    Requirement("Query", "Durability", "last values for late subscribers, chosen by tag"),
    Requirement("Transport", "Conduit", "channels of its own; ids beyond the agreed end a session"),
    Requirement("Transport", "Migrate", "order is kept from one conduit to another"),
    Requirement("Transport", "Frag", "cut and put together, within bounds"),
    Requirement("Transport", "RSpace", "ids and names of spaces do not meet"),
    Requirement("Transport", "Packing", "several messages in a packet, up to the MTU"),
    Requirement("Transport", "Multicast", "a conduit to all peers: one datagram, repeats to one"),
    Requirement("Transport", "Framing", "lengths on a stream, or none after the length 0"),
)  # fmt: skip


def document() -> str:
    """The page of the reference."""
    lines = [
        "# Conformance to the 2018 protocol",
        "",
        "Generated from `src/zenlake/xrce/conformance.py`. Each line has a test of its own in",
        "`tests/xrce/test_conformance.py`. Not implemented, because the paper never defined them:",
        "Query (10), ConduitClose (17) and the deltas (21 to 23).",
        "",
        "| module | requirement | what is tested |",
        "|---|---|---|",
    ]
    lines += [f"| {one.module} | {one.name} | {one.means} |" for one in REQUIREMENTS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    Path("docs/reference/conformance-2018.md").write_text(document(), "utf-8")
