"""The process of a running lake: its loop, its status, the local socket, the bus."""
