"""What a program does with what it receives: channels to take from, and callbacks."""

from __future__ import annotations

from zenlake.engine.handlers import Callback, DefaultHandler, FifoChannel, Handler, RingChannel

__all__ = ["Callback", "DefaultHandler", "FifoChannel", "Handler", "RingChannel"]
