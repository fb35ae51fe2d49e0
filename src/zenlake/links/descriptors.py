"""How many files and sockets this process may have open."""

from __future__ import annotations

__all__ = ["most_descriptors", "raise_limit"]


def raise_limit() -> int:
    """Take as many descriptors as the system allows this process; gives how many that are.

    Systems start programs with a thousand, and a router with as many neighbours and a journal
    needs more. 0 where the system has no such limit.
    """
    try:
        import resource
    except ImportError:
        return 0
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = hard if hard != resource.RLIM_INFINITY else max(soft, 1 << 20)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):
            return soft
    return wanted


def most_descriptors() -> int:
    """Return how many descriptors this process may open; 0 where the system has no such limit."""
    try:
        import resource
    except ImportError:
        return 0
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return 0 if soft == resource.RLIM_INFINITY else soft
