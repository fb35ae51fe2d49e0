"""The words of all other rooms: configuration, typed tables, types of columns, where a lake lies.

Pure: nothing here starts Spark or opens a table.
"""
