"""Access control: who may say what about which keys.

A configuration has *rules* (messages on keys, allowed or denied), *subjects* (neighbours with
certain properties) and *policies* (these rules for those subjects). A decision:

1. Every subject is the product of its lists: two interfaces and three users are six *identities*.
   Equal identities of two subjects are one, with the rules of both. A neighbour has each identity
   whose properties are all its own; a property that is not listed does not matter.
2. Each identity decides: a deny rule whose key includes the message's key denies. Else, if the
   default is to allow, it allows. Else an allow rule whose key includes the message's key allows,
   and everything else is denied.
3. One identity that allows is enough. A neighbour without any gets the default.

A part of the service that a node belongs to (`Subject.part`: the lake of `zenlake up`) is denied
nothing, unless a subject names its user; then it is judged like any other neighbour.

That identities merge is not a detail. If `everybody-in-eth0` may put and `eth0` may not, both are
one identity, and its deny rule wins; taken apart, the first would open what the second closes.

**Writes with wildcards.** A put or a deletion of `**` is one of every key there is: storages and
recorders do to each key that it means what it says. So a deny rule denies it if there is a key that
both mean, as if each of those keys was written. Eclipse Zenoh denies it only if the rule includes
it, and who may not write `secret/**` empties it there by a deletion of `**`. Here storages and
recorders of this node apply it to the keys that its sender may write (`node/narrowed_write`).

**Which "includes".** A message's key may have wildcards (a subscriber's, mostly), and then Eclipse
Zenoh finds fewer inclusions than there are: it says that `*/**` does not include `**/x`. An allow
rule is read its way here, so that it allows nothing that it did not allow there. A deny rule is
read as what it says, so that it denies at least what it denied there. All these differences refuse
more and permit nothing: a decision can only turn from allow to deny when allow rules shrink and
deny rules grow.
"""

from __future__ import annotations

from itertools import product
from typing import Final, final

from zenlake.config.model_interceptors import AccessControl, AccessRule, AccessSubject
from zenlake.keys.matching import chunk_includes, includes, is_verbatim, is_wild
from zenlake.keys.readable import ReadableChoice, ReadableKeys
from zenlake.keys.rights import Rights, in_order
from zenlake.keys.tree import KeyTree, TreeEntry
from zenlake.records import record
from zenlake.routing.policy.messages import (
    DELETE,
    EGRESS,
    FLOWS,
    INGRESS,
    KINDS,
    PUT,
    QUERY,
    REPLY,
    flows_of,
)
from zenlake.routing.policy.subject import Subject

__all__ = ["Access", "AccessRules", "Explanation", "Ground", "covers", "is_write_of_many"]

RULE_SETS: Final = 1024
"""How many combinations of subjects are kept compiled; neighbours mostly share a few."""


@record(frozen=True, slots=True)
class Ground:
    """What one identity of a neighbour says, and by which rule."""

    allowed: bool
    #: The subjects of the configuration that have this identity.
    subjects: tuple[str, ...]
    #: The rule that decided, its key, and the policy that applies it to one of the subjects; all
    #: None where no rule spoke and the default did. A policy without id is known by its place: #1.
    rule: str | None = None
    key_expr: str | None = None
    policy: str | None = None
    subject: str | None = None
    #: The key is a put or a deletion of many keys, and the rule denies some of them.
    in_part: bool = False

    def sentence(self) -> str:
        """The ground in one line."""
        names = ", ".join([f"'{name}'" for name in self.subjects])
        if self.rule is None:
            silent = "no rule denies it" if self.allowed else "no rule allows it"
            return f"{silent} for subject {names}; by default it is {_done(self.allowed)}"
        if self.in_part:
            return (
                f"rule '{self.rule}' denies keys of {self.key_expr}, and this is a write of many "
                f"keys that would change them, for subject '{self.subject}', by policy "
                f"'{self.policy}'; write to keys, or to a key expression without those"
            )
        return (
            f"rule '{self.rule}' {'allows' if self.allowed else 'denies'} it by {self.key_expr}, "
            f"for subject '{self.subject}', by policy '{self.policy}'"
        )


@record(frozen=True, slots=True)
class Explanation:
    """A decision and its grounds."""

    flow: str
    message: str
    key: str
    allowed: bool
    #: The default permission was to allow.
    default: bool
    #: One for each identity of the neighbour; none if it has none, or the message has no key.
    grounds: tuple[Ground, ...]

    @property
    def deciding(self) -> Ground | None:
        """The ground that settled it: the first that allows, or the first rule that denies."""
        for ground in self.grounds:
            if ground.allowed:
                return ground
        for ground in self.grounds:
            if ground.rule is not None:
                return ground
        return self.grounds[0] if self.grounds else None

    def sentence(self) -> str:
        """Why, in one line."""
        ground = self.deciding
        if ground is not None:
            return ground.sentence()
        if not self.key:
            return "it names no key expression that a rule could include"
        return f"no subject matches the neighbour; by default it is {_done(self.default)}"


def _done(allowed: bool) -> str:
    return "allowed" if allowed else "denied"


@final
class _Source:
    """Where in the configuration a rule's key stands."""

    __slots__ = ("order", "policy", "rule", "subject")

    def __init__(self, order: int, rule: str, policy: str, subject: str) -> None:
        self.order: int = order
        self.rule: str = rule
        self.policy: str = policy
        self.subject: str = subject


@final
class RuleSet:
    """The rules of one identity, found by flow, kind and key."""

    __slots__ = ("_allow", "_deny", "subjects")

    def __init__(self, subjects: tuple[str, ...]) -> None:
        """Start without rules."""
        size = len(FLOWS) * len(KINDS)
        self.subjects: tuple[str, ...] = subjects
        self._deny: list[KeyTree[_Source] | None] = [None] * size
        self._allow: list[KeyTree[_Source] | None] = [None] * size

    def add(self, order: int, rule: AccessRule, policy: str, subject: str) -> None:
        """Let a policy apply a rule to a subject; the first place of a key is remembered."""
        trees = self._allow if rule.permission == "allow" else self._deny
        source = _Source(order, rule.id, policy, subject)
        for flow in flows_of(rule.flows):
            for message in rule.messages:
                place = _place(flow, KINDS.index(message))
                tree = trees[place]
                if tree is None:
                    tree = KeyTree()
                    trees[place] = tree
                for key_expr in rule.key_exprs:
                    text = str(key_expr)
                    if text not in tree:
                        tree.insert(text, source)

    def denies_anything(self, flow: int) -> bool:
        """Whether it has a deny rule for this flow."""
        return any(self._deny[_place(flow, kind)] is not None for kind in range(len(KINDS)))

    def permits(self, flow: int, kind: int, key: str, default: bool) -> bool:
        """Whether this identity lets the message pass."""
        if self._denying(flow, kind, key):
            return False
        if default:
            return True
        allow = self._allow[_place(flow, kind)]
        if allow is None:
            return False
        chunks = key.split("/")
        return any(covers(entry.key.split("/"), chunks) for entry in allow.including(key))

    def _denying(self, flow: int, kind: int, key: str) -> list[TreeEntry[_Source]]:
        """The keys of deny rules that concern a message."""
        deny = self._deny[_place(flow, kind)]
        if deny is None:
            return []
        return deny.intersecting(key) if is_write_of_many(kind, key) else deny.including(key)

    def choice(self, flow: int, kind: int, default: bool) -> ReadableChoice:
        """The keys of messages of a kind that this identity lets pass."""
        deny = self._deny[_place(flow, kind)]
        allow = self._allow[_place(flow, kind)]
        denied = () if deny is None else tuple([entry.key for entry in deny.entries()])
        if default:
            return ReadableChoice(None, denied)
        return ReadableChoice(
            () if allow is None else tuple([entry.key for entry in allow.entries()]), denied
        )

    def ground(self, flow: int, kind: int, key: str, default: bool) -> Ground:
        """The same with its reason; of several rules that agree, the first in the file."""
        denying = self._denying(flow, kind, key)
        rules: list[tuple[int, str, _Source]] = [
            (hit.value.order, hit.key, hit.value) for hit in denying
        ]
        allowed = not rules
        if allowed and not default:
            allow = self._allow[_place(flow, kind)]
            chunks = key.split("/")
            rules = [
                (hit.value.order, hit.key, hit.value)
                for hit in (allow.including(key) if allow is not None else [])
                if covers(hit.key.split("/"), chunks)
            ]
            allowed = bool(rules)
        if not rules:
            return Ground(allowed, self.subjects)
        _, key_expr, source = min(rules, key=lambda hit: hit[:2])
        in_part = not allowed and is_write_of_many(kind, key) and not includes(key_expr, key)
        return Ground(
            allowed, self.subjects, source.rule, key_expr, source.policy, source.subject, in_part
        )


def is_write_of_many(kind: int, key: str) -> bool:
    """Whether a message is a put or a deletion of all keys that an expression means."""
    return kind in (PUT, DELETE) and is_wild(key)


def _place(flow: int, kind: int) -> int:
    return flow * len(KINDS) + kind


def covers(a: list[str], b: list[str]) -> bool:
    """Whether `a` includes `b` as Eclipse Zenoh finds it, both cut into chunks.

    A `**` of `a` covers any chunks of `b`, a `**` among them; no other chunk covers a `**`.
    """
    i = 0
    j = 0
    back = -1  # where `a` goes on after its last `**`, or -1 before the first
    start = 0  # where that `**` stopped covering
    while j < len(b):
        if i < len(a):
            c = a[i]
            if c == "**":
                i += 1
                back = i
                start = j
                continue
            if b[j] != "**" and chunk_includes(c, b[j]):
                i += 1
                j += 1
                continue
        # Of the chunks that `**` may cover, those that begin with @ are none.
        if back < 0 or is_verbatim(b[start]):
            return False
        start += 1
        i = back
        j = start
    while i < len(a) and a[i] == "**":
        i += 1
    return i == len(a)


@final
class Access:
    """What one neighbour may do."""

    __slots__ = ("default", "rule_sets")

    def __init__(self, default: bool, rule_sets: list[RuleSet]) -> None:
        """`rule_sets`: one for each identity."""
        self.default: bool = default
        self.rule_sets: list[RuleSet] = rule_sets

    def may_refuse(self, flow: int) -> bool:
        """Whether anything at all can be refused; if not, there is nothing to check."""
        if not self.default:
            return True
        if not self.rule_sets:
            return False
        return all(rules.denies_anything(flow) for rules in self.rule_sets)

    def permits(self, flow: int, kind: int, key: str) -> bool:
        """Whether a message passes; `key` is in canonical form, or empty if there is none."""
        if not key:
            return False
        for rules in self.rule_sets:
            if rules.permits(flow, kind, key, self.default):
                return True
        return self.default and not self.rule_sets

    def readable(self) -> ReadableKeys:
        """The keys that it may ask for and be answered about."""
        return self._keys_of(((INGRESS, QUERY), (EGRESS, REPLY)))

    def rights(self) -> Rights:
        """The keys that it may read and write, for what acts for it later."""
        writable = self._keys_of(((INGRESS, PUT),))
        return Rights(in_order(self.readable()), in_order(writable))

    def _keys_of(self, messages: tuple[tuple[int, int], ...]) -> ReadableKeys:
        demands: list[tuple[ReadableChoice, ...]] = []
        for flow, kind in messages:
            choices = tuple([rules.choice(flow, kind, self.default) for rules in self.rule_sets])
            free = any([one.allowed is None and not one.denied for one in choices])
            if not free and (choices or not self.default):
                demands.append(choices)
        return ReadableKeys(tuple(dict.fromkeys(demands)))

    def explain(self, flow: int, kind: int, key: str) -> Explanation:
        """The same decision with all its grounds."""
        grounds: tuple[Ground, ...] = ()
        allowed = False
        if key:
            grounds = tuple(
                [rules.ground(flow, kind, key, self.default) for rules in self.rule_sets]
            )
            allowed = any(ground.allowed for ground in grounds) if grounds else self.default
        return Explanation(FLOWS[flow], KINDS[kind], key, allowed, self.default, grounds)


@final
class AccessRules:
    """The section `access_control` of a configuration, ready to be asked."""

    __slots__ = ("_applied", "_named", "_rule_sets", "_subjects", "default")

    def __init__(self, section: AccessControl) -> None:
        """Read a section; whether it is enabled is for the caller to ask."""
        self.default: bool = section.default_permission == "allow"
        self._subjects: tuple[AccessSubject, ...] = section.subjects or ()
        #: The users that some subject names.
        self._named: frozenset[str] = frozenset(
            [user for subject in self._subjects for user in subject.usernames or ()]
        )
        #: By subject: the rules of its policies, in the order of the file.
        self._applied: list[list[tuple[int, AccessRule, str]]] = [[] for _ in self._subjects]
        self._rule_sets: dict[tuple[int, ...], RuleSet] = {}
        rules = {rule.id: rule for rule in section.rules or ()}
        places = {subject.id: place for place, subject in enumerate(self._subjects)}
        order = 0
        for number, policy in enumerate(section.policies or (), start=1):
            label = policy.id if policy.id is not None else f"#{number}"
            for rule_id in policy.rules:
                order += 1
                for subject_id in policy.subjects:
                    self._applied[places[subject_id]].append((order, rules[rule_id], label))

    def for_neighbour(self, who: Subject) -> Access:
        """What one neighbour may do."""
        if who.part and who.username not in self._named:
            return Access(True, [])
        identities: dict[tuple[object, ...], list[int]] = {}
        for place, subject in enumerate(self._subjects):
            for identity in _identities(subject, who):
                identities.setdefault(identity, []).append(place)
        # Identities of the same subjects have the same rules: one of them is enough.
        groups = dict.fromkeys(tuple(places) for places in identities.values())
        return Access(self.default, [self._rule_set(group) for group in groups])

    def _rule_set(self, group: tuple[int, ...]) -> RuleSet:
        rule_set = self._rule_sets.get(group)
        if rule_set is None:
            if len(self._rule_sets) >= RULE_SETS:
                self._rule_sets.clear()
            rule_set = RuleSet(tuple([self._subjects[place].id for place in group]))
            for place in group:
                for order, rule, policy in self._applied[place]:
                    rule_set.add(order, rule, policy, self._subjects[place].id)
            self._rule_sets[group] = rule_set
        return rule_set


def _identities(subject: AccessSubject, who: Subject) -> list[tuple[object, ...]]:
    """The identities of a subject that a neighbour has: only these of the product are made."""
    shared: list[list[object]] = []
    for listed, its in (
        (subject.usernames, (who.username,)),
        (subject.zids, (who.zid,)),
        (subject.cert_common_names, who.cert_common_names),
        (subject.interfaces, who.interfaces),
        (subject.link_protocols, (who.link_protocol,)),
    ):
        values = _shared(listed, its)
        if not values:
            return []
        shared.append(values)
    return list(product(*shared))


def _shared(listed: tuple[object, ...] | None, its: tuple[object, ...]) -> list[object]:
    if listed is None:
        return [None]
    return [value for value in dict.fromkeys(its) if value is not None and value in listed]
