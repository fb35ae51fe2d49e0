"""SQL over the tables: what a question may ask, which rows it sees, and its turn on Spark."""
