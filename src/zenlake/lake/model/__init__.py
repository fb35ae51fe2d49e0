"""What everything else speaks of: configuration, typed tables, types of columns, where a lake lies.

Pure: nothing here starts Spark or opens a table.
"""
