"""One Delta table: its log, its data files with their statistics, and its mirror in Iceberg."""
