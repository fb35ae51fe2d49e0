"""zenlake: a complete Zenoh stack in Python whose data pipeline runs on Apache Spark.

Importing this package costs next to nothing: import the rooms you need, as in
`from zenlake.keys import KeyExpr`.
"""

from __future__ import annotations

import os.path
from importlib.machinery import EXTENSION_SUFFIXES

__all__ = ["__version__", "compiled"]

__version__ = "0.1.0"

compiled: bool = any(
    os.path.isfile(os.path.join(os.path.dirname(__path__[0]), "zenlake__mypyc" + suffix))
    for suffix in EXTENSION_SUFFIXES
)
"""Whether the hot modules run as extensions: they share one library, which is there or is not."""
