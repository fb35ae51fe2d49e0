"""What crosses from one region to another through this node, and the route among routers.

A region may have several gateways; each message crosses by one of them.
"""

from __future__ import annotations

from zenlake.routing.face import Face
from zenlake.routing.mesh import Mesh


class Borders:
    """The borders between the regions of a node."""

    __slots__ = ("meshes", "zid")

    def __init__(self, zid: bytes, meshes: dict[int, Mesh]) -> None:
        """`zid`: this node; `meshes`: the other routers, if it is one, by region."""
        self.zid: bytes = zid
        self.meshes: dict[int, Mesh] = meshes

    def crosses(self, source: Face, root: bytes, target: Face) -> bool:
        """Whether it is for this node to carry something over the border of a region.

        A region may have several gateways; `root` is the node where it came from.
        """
        if source.meshed and source.south and source.region != target.region:
            return self.meshes[source.region].leads(root)
        if source.south or not target.south:
            return True
        if target.meshed:
            return self.meshes[target.region].leads(root)
        return not target.gateways or (target.carried and root not in target.gateways)

    def root_of(self, face: Face, number: int) -> bytes:
        """The node where something came from, as far as its own region can tell.

        Among routers that is the one that said it first, by the number that the neighbour uses
        for it; what comes from the south is ours.
        """
        if face.meshed:
            return self.meshes[face.region].state.named(face.id, number)
        return self.zid if face.south else face.zid

    def number_of(self, face: Face, root: bytes) -> int:
        """The number that the region of a face is told for where something of it came from."""
        return self.meshes[face.region].number(root) if face.meshed else 0

    def hops(self, source: Face, root: bytes, routers: list[Face]) -> list[Face]:
        """The neighbours that lead to some routers, each once."""
        hops: list[Face] = []
        for region, mesh in self.meshes.items():
            there = [router for router in routers if router.region == region]
            if there and self.crosses(source, root, there[0]):
                hops += mesh.hops(root if source.region == region else mesh.me, source, there)
        return hops

    def hop(self, source: Face, root: bytes, router: Face) -> Face | None:
        """The neighbour that leads to a router, if it is for this node to send there."""
        mesh = self.meshes[router.region]
        if not self.crosses(source, root, router):
            return None
        return mesh.hop(root if source.region == router.region else mesh.me, source, router)
