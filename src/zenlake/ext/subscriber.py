"""Advanced subscribers: they get everything, in order, and say what is lost."""

from __future__ import annotations

from typing import Any, ClassVar, Unpack, overload

from zenlake.api.call_options import SubscriberOptions
from zenlake.api.core import SessionCore, open_runtime
from zenlake.api.entity import (
    Beside,
    Called,
    H,
    Handler,
    KeyedReceiving,
    Queued,
    Receiving,
    forgotten,
    receiver_of,
)
from zenlake.api.liveliness import Liveliness
from zenlake.api.options import locality
from zenlake.api.session import Session
from zenlake.api.subscribe import Subscriber
from zenlake.engine.handlers import Receiver
from zenlake.ext.config import HistoryConfig, Miss, RecoveryConfig
from zenlake.ext.following import Beats, Following, Tokens
from zenlake.keys import IntoKeyExpr, KeyExpr
from zenlake.node.advanced import Sources
from zenlake.node.advanced_keys import publishers_of, subscriber_key
from zenlake.node.entities import LivelinessSubscriber, LocalSubscriber, Token
from zenlake.node.programs.local import Local
from zenlake.node.sample import Sample
from zenlake.values import Locality

__all__ = ["AdvancedSubscriber", "SampleMissListener", "declare_advanced_subscriber"]


class SampleMissListener(Receiving[Miss, H]):
    """Tells of samples that an advanced subscriber will never get."""

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    WHAT: ClassVar[str] = "sample miss listener"

    def __init__(self, session: SessionCore, receiver: Receiver, following: Following) -> None:
        """Made by `AdvancedSubscriber.sample_miss_listener`."""
        super().__init__(session, receiver)
        self._following = following
        following.misses.append(receiver.channel)

    def _withdraw(self, local: Local) -> None:
        channel = self.receiver.channel
        if channel in self._following.misses:
            self._following.misses.remove(channel)
        channel.end()


class AdvancedSubscriber(KeyedReceiving[Sample, H]):
    """A subscriber that asks for what it missed, and delivers everything once and in order."""

    WHAT: ClassVar[str] = "subscriber"

    def __del__(self) -> None:
        """Undeclared with its last reference."""
        forgotten(self)

    def __init__(
        self,
        session: Session,
        receiver: Receiver,
        entity: LocalSubscriber,
        following: Following,
        beats: LocalSubscriber | None,
        tokens: LivelinessSubscriber | None,
        token: Token | None,
    ) -> None:
        """Made by `declare_advanced_subscriber`."""
        super().__init__(session, receiver, entity)
        self._following = following
        self._beats = beats
        self._tokens = tokens
        self._token = token

    @overload
    def sample_miss_listener(
        self, /, handler: Queued[Miss] = None
    ) -> SampleMissListener[Handler[Miss]]: ...
    @overload
    def sample_miss_listener(self, /, handler: Beside[Miss, H]) -> SampleMissListener[H]: ...
    @overload
    def sample_miss_listener(self, /, handler: Called[Miss]) -> SampleMissListener[None]: ...
    def sample_miss_listener(self, /, handler: object = None) -> SampleMissListener[Any]:
        """Be told of samples that will never come.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
        """
        self._check()
        receiver = receiver_of(self._session, handler, "Miss", self._entity.key)
        return SampleMissListener(self._session, receiver, self._following)

    @overload
    def detect_publishers(
        self, /, handler: Queued[Sample] = None, *, history: bool | None = None
    ) -> Subscriber[Handler[Sample]]: ...
    @overload
    def detect_publishers(
        self, /, handler: Beside[Sample, H], *, history: bool | None = None
    ) -> Subscriber[H]: ...
    @overload
    def detect_publishers(
        self, /, handler: Called[Sample], *, history: bool | None = None
    ) -> Subscriber[None]: ...
    def detect_publishers(
        self, /, handler: Any = None, *, history: bool | None = None
    ) -> Subscriber[Any]:
        """Be told which publishers come (PUT) and go (DELETE), if they let themselves be seen.

        Args:
            handler: Where they go: a channel to take from (the default), a callback, or a pair of a
                callback and an object to reach as `handler`.
            history: Whether what is alive already is told too.
        """
        self._check()
        key = publishers_of(self._entity.key)
        subscriber: Subscriber[Any] = Liveliness(self._session).declare_subscriber(
            key, handler, history=history
        )
        return subscriber

    def _withdraw(self, local: Local) -> None:
        if self._token is not None:
            local.liveliness.untoken(self._token)
        if self._tokens is not None:
            local.liveliness.unwatch(self._tokens)
        if self._beats is not None:
            local.unsubscribe(self._beats)
        super()._withdraw(local)
        self._following.withdraw(local)


class AdvancedSubscriberOptions(SubscriberOptions, total=False):
    """The options of `declare_advanced_subscriber`."""

    history: HistoryConfig | None
    recovery: RecoveryConfig | None
    subscriber_detection: bool | None


@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Queued[Sample] = None,
    **options: Unpack[AdvancedSubscriberOptions],
) -> AdvancedSubscriber[Handler[Sample]]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Beside[Sample, H],
    **options: Unpack[AdvancedSubscriberOptions],
) -> AdvancedSubscriber[H]: ...
@overload
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: Called[Sample],
    **options: Unpack[AdvancedSubscriberOptions],
) -> AdvancedSubscriber[None]: ...
def declare_advanced_subscriber(
    session: Session,
    key_expr: IntoKeyExpr,
    handler: object = None,
    *,
    allowed_origin: Locality | None = None,
    history: HistoryConfig | None = None,
    recovery: RecoveryConfig | None = None,
    subscriber_detection: bool | None = None,
) -> AdvancedSubscriber[Any]:
    """Subscribe to a key expression, to its past (`history`) and to what was lost (`recovery`).

    With `subscriber_detection` others learn of it as soon as it is there.

    Args:
        session: The session to declare it on.
        key_expr: A key expression, as text or as a `KeyExpr`.
        handler: Where they go: a channel to take from (the default), a callback, or a pair of a
            callback and an object to reach as `handler`.
        allowed_origin: Whether it takes what comes from here, from elsewhere, or both.
    """
    key = str(KeyExpr.of(key_expr))
    runtime = open_runtime(session)
    origin = locality(allowed_origin)
    receiver = receiver_of(session, handler, "Sample", key)
    sources = Sources(
        key,
        None if history is None else history.history,
        recovery is not None,
        None if recovery is None else recovery.period,
    )
    following = Following(runtime, sources, receiver.channel, origin)
    with runtime.locked() as node:
        local = node.local
        entity = local.subscribe(key, following, origin)
        following.begin()
        beats = tokens = token = None
        if recovery is not None and recovery.heartbeat:
            beats = local.subscribe(publishers_of(key), Beats(following), origin)
        if history is not None and history.detect_late_publishers:
            tokens = local.liveliness.watch(publishers_of(key), Tokens(following), True)
        if subscriber_detection:
            token = local.liveliness.token(subscriber_key(key, runtime.zid, entity.eid))
        subscriber: AdvancedSubscriber[Any] = AdvancedSubscriber(
            session, receiver, entity, following, beats, tokens, token
        )
        return subscriber
