"""`format("zenlake")`: lake tables as tables and streams of any PySpark program, without jars."""
