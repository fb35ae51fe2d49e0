"""Where a lake lies, and one Delta table: log, data files, statistics, mirror in Iceberg."""
