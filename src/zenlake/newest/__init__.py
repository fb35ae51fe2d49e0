"""What a storage remembers: the newest value of each key, whatever order the samples came in.

newest_values  the rule: which value a key has, with late samples, deletions and wildcards
value          a value, and the records that a volume keeps of it
contents       the index of one storage, and what its volume has still to write
"""

from __future__ import annotations

from zenlake.newest.contents import Contents
from zenlake.newest.newest_values import Held, NewestValues
from zenlake.newest.value import Batch, Entry, Value, WideUpdate

__all__ = ["Batch", "Contents", "Entry", "Held", "NewestValues", "Value", "WideUpdate"]
