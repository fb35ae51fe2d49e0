"""Which rows of a batch can be the newest of their keys, by the rule of `zenlake.newest`.

Newer is what has the greater time, and of equal times what has the greater id. Times decide nearly
always, and numpy compares those; of rows that have the very same time all are kept.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["newest_rows"]


def newest_rows(
    codes: npt.NDArray[np.int32], times: npt.NDArray[np.int64], keys: int
) -> npt.NDArray[np.bool_]:
    """Return whether each row has the greatest time of its key.

    `codes` are the numbers of the keys, below `keys`.
    """
    newest = np.full(keys, np.iinfo(np.int64).min, np.int64)
    if (times[1:] >= times[:-1]).all():
        # In the order of time, as it nearly always comes: the last of each key is its newest.
        newest[codes] = times
    else:
        np.maximum.at(newest, codes, times)
    greatest: npt.NDArray[np.bool_] = times == newest[codes]
    return greatest
