"""What the programs of a node have declared and asked."""
