"""Views and alerts: queries that are asked once and answered for as long as the lake runs.

query_shape     what can be read from the text: what rows are about, what an alert waits for
alert_state     when an alert is raised and when it is cleared; pure
generation      which columns one was planned with, and what becomes of it when they change
table_stream    the tables of a lake as streams of Spark
result_table    the table of a view or an alert: every batch in it once
alert_results   what an alert raised and cleared, kept and published
publishing      results as keys on the bus
stall           when one has made no progress for too long; pure
planning        a definition judged, and planned by Spark over streams
running_query   one of them, as a query of Structured Streaming
manager         all of them: made, listed, dropped, and asked for
backtest        an alert over history
"""
