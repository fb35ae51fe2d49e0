"""HOW a node should behave: the typed configuration, and the reading of Eclipse Zenoh's files."""

from __future__ import annotations

from zenlake.config.config import Config
from zenlake.config.model import Settings
from zenlake.config.problem import ConfigWarning, InvalidConfig, Problem
from zenlake.config.shape import Mode

__all__ = ["Config", "ConfigWarning", "InvalidConfig", "Mode", "Problem", "Settings"]
