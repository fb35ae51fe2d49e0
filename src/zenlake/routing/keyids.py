"""Keys as neighbours name them: numbers for them, which are legal, what they cost."""

from __future__ import annotations

from typing import Final

from zenlake.errors import KeyExprError
from zenlake.keys.matching import check
from zenlake.transport.budget import MemoryAccount

#: What a declaration or an interest costs beside its key, in bytes: a row of the tables with its
#: dictionaries. Measured: 300 000 tokens take 356 MiB.
ROW: Final = 1100
#: What a chunk of a key costs: a node of the tree and its dictionary. Measured: 75 KB for 500.
CHUNK: Final = 150
#: What a number for a key costs beside the key.
NUMBER: Final = 250
#: What is wrong with a key that cannot be told.
UNDECLARED: Final = "it names a key by a number that it has not declared"


def is_key(text: str) -> bool:
    """Whether a text is a canonical key expression."""
    return not key_flaw(text)


def key_flaw(key: str | None) -> str:
    """What is wrong with a key that a neighbour named; empty: nothing."""
    if key is None:
        return UNDECLARED
    try:
        check(key)
    except KeyExprError as error:
        return str(error)
    return ""


def key_cost(key: str) -> int:
    """What it costs to keep a declaration on a key, if no other face has one there."""
    return ROW + len(key) + CHUNK * (key.count("/") + 1)


def literal_prefix(key: str) -> str:
    """The chunks before the first wildcard: what is worth an id of its own."""
    at = key.find("*")
    if at < 0:
        return key
    cut = key.rfind("/", 0, at)
    return key[:cut] if cut > 0 else ""


#: The longest key expression, in bytes: one that is longer cannot be written out.
LONGEST: Final = 0xFFFF


#: All the keys that this side declares to one neighbour, in bytes.
INVENTED: Final = 4 << 20


class KeyIds:
    """The numbers that two neighbours use for keys: those I declared, those it declared."""

    __slots__ = ("_next", "account", "invented", "mine", "mine_of", "theirs", "theirs_of")

    def __init__(self, account: MemoryAccount) -> None:
        """`account` pays for the keys that the neighbour declares."""
        self.mine: dict[int, str] = {}
        self.mine_of: dict[str, int] = {}
        self.theirs: dict[int, str] = {}
        self.theirs_of: dict[str, int] = {}
        self.account: MemoryAccount = account
        #: Bytes of the keys that I declared.
        self.invented: int = 0
        #: All numbers below it are taken, or were.
        self._next: int = 1

    def learn(self, id: int, key: str) -> bool:
        """The neighbour declared an id; False if it has declared too much."""
        if id in self.theirs:
            return True  # the old meaning stays
        if not self.account.charge(len(key) + NUMBER):
            return False
        self.theirs[id] = key
        self.theirs_of.setdefault(key, id)
        return True

    def forget(self, id: int) -> None:
        """The neighbour undeclared an id."""
        key = self.theirs.pop(id, None)
        if key is not None:
            self.account.refund(len(key) + NUMBER)
            if self.theirs_of.get(key) == id:
                del self.theirs_of[key]

    def resolve(self, scope: int, sender_mapping: bool, suffix: str) -> str | None:
        """The whole key that the neighbour meant, or None if its number means nothing."""
        if scope == 0:
            return suffix
        prefix = (self.theirs if sender_mapping else self.mine).get(scope)
        if prefix is None:
            return None
        key = prefix + suffix
        # A byte a character at least: only long keys are worth counting.
        if len(key) * 4 > LONGEST and len(key.encode()) > LONGEST:
            return None
        return key

    def shortest(self, key: str) -> tuple[int, bool, str]:
        """How to say a key with what both know: (scope, in my mapping, suffix)."""
        if self.theirs_of or self.mine_of:
            end = len(key)
            while end > 0:
                prefix = key[:end]
                id = self.theirs_of.get(prefix, 0)
                if id:
                    return id, False, key[end:]
                id = self.mine_of.get(prefix, 0)
                if id:
                    return id, True, key[end:]
                end = key.rfind("/", 0, end)
        return 0, True, key

    def invent(self, key: str) -> int:
        """A new id of mine for a key; 0 if all are used."""
        id = self._next
        while id in self.mine or id in self.theirs:
            id += 1
        self._next = id
        if id > 0xFFFF or self.invented + len(key) > INVENTED:
            return 0
        self.invented += len(key)
        self.mine[id] = key
        self.mine_of[key] = id
        return id
