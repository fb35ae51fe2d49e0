"""The account of every source: what it sent, what was received, what is missing and healed."""
