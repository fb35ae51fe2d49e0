"""Everything a node decides, with no socket, clock or thread."""
