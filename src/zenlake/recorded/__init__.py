"""A recorded sample in its forms: numbers of the wire in journals, words in tables, and back.

encoding     the text of an encoding, from which id and schema come back exactly
words        kinds and sources of one row, where no library is installed
columns      whole columns of encodings, kinds, ids and sources, either way
time_bounds  a range of time as the first and the last time of the wire in it
newest_rows  which rows can be the newest of their keys

Pure. Journal, Spark's source, lake, replay, imports and the command line all convert here.
"""
