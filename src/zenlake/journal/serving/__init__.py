"""A journal on the bus: the rows, the latest values and the past of the keys it records."""
