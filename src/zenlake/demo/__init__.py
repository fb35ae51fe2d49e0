"""Realistic load: simulated machines that publish as real ones do."""

from __future__ import annotations

from zenlake.demo.fleet import Emission, Fleet, Robot

__all__ = ["Emission", "Fleet", "Robot"]
