"""The words of all other rooms: configuration, typed tables, types of columns, definitions, status.

Pure: nothing here opens a file or a table, starts Spark, or looks at a clock.
"""
