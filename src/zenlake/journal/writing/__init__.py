"""The one writer of a journal: partitions, acknowledgement, sealing, retention, shipping."""
