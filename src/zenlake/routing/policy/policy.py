"""A node's policy: its configuration's interceptors, compiled once and asked per neighbour."""

from __future__ import annotations

from typing import final

from zenlake.config.model import Settings
from zenlake.config.model_interceptors import AccessControl, Downsampling, LowPassFilter, NetworkQos
from zenlake.routing.policy.access import Access, AccessRules
from zenlake.routing.policy.downsampling import downsamplers
from zenlake.routing.policy.gate import Interceptors, PolicyGate
from zenlake.routing.policy.low_pass import LowPass
from zenlake.routing.policy.messages import EGRESS, INGRESS
from zenlake.routing.policy.namespace import Namespace
from zenlake.routing.policy.qos_overwrite import PublicationOverwrites, overwrites
from zenlake.routing.policy.subject import Subject

__all__ = ["Policy"]


@final
class Policy:
    """What a configuration demands of every message; it does not change.

    A new configuration makes a new policy, and each neighbour asks that for its interceptors.
    """

    __slots__ = ("_access", "_downsampling", "_low_pass", "_network", "namespace", "publications")

    def __init__(
        self,
        access_control: AccessControl | None = None,
        downsampling: tuple[Downsampling, ...] = (),
        low_pass_filter: tuple[LowPassFilter, ...] = (),
        network: tuple[NetworkQos, ...] = (),
        publications: PublicationOverwrites | None = None,
        namespace: Namespace | None = None,
    ) -> None:
        """Made of the sections of a configuration; `of` takes them from it."""
        self._access: AccessRules | None = None
        if access_control is not None and access_control.enabled:
            self._access = AccessRules(access_control)
        self._downsampling: tuple[Downsampling, ...] = downsampling
        self._low_pass: tuple[LowPassFilter, ...] = low_pass_filter
        self._network: tuple[NetworkQos, ...] = network
        #: Of this node's own publishers; None if they keep what they chose.
        self.publications: PublicationOverwrites | None = publications
        #: Of this node's own session; None if it has none.
        self.namespace: Namespace | None = namespace

    @classmethod
    def of(cls, settings: Settings) -> Policy:
        """The policy of a configuration."""
        publication = settings.qos.publication
        prefix = settings.namespace
        return cls(
            settings.access_control,
            settings.downsampling,
            settings.low_pass_filter,
            settings.qos.network,
            PublicationOverwrites(publication) if publication else None,
            None if prefix is None else Namespace(str(prefix)),
        )

    def is_idle(self) -> bool:
        """Whether the messages of every neighbour pass as they are."""
        return self._access is None and not (self._downsampling or self._low_pass or self._network)

    def access_of(self, who: Subject) -> Access | None:
        """What a neighbour may do; None if access control is not enabled."""
        return None if self._access is None else self._access.for_neighbour(who)

    def for_neighbour(self, who: Subject) -> Interceptors | None:
        """The interceptors of a new neighbour, or None if all its messages pass as they are."""
        access = self.access_of(who)
        ingress = self._gate(who, access, INGRESS)
        egress = self._gate(who, access, EGRESS)
        if ingress is None and egress is None:
            return None
        readable = None if access is None else access.readable()
        if readable is not None and readable.unrestricted:
            readable = None
        return Interceptors(ingress, egress, readable)

    def _gate(self, who: Subject, access: Access | None, flow: int) -> PolicyGate | None:
        gate = PolicyGate(
            flow,
            access if access is not None and access.may_refuse(flow) else None,
            LowPass(self._low_pass, who, flow),
            downsamplers(self._downsampling, who, flow),
            overwrites(self._network, who, flow),
        )
        return None if gate.is_idle() else gate
