"""Standing questions: views and alerts, asked once and answered for as long as the lake runs.

definition   what is asked, kept in the lake's folder
shape        what can be read from the text: what rows are about, what an alert waits for
raising      when an alert is raised and when it is cleared; pure
source       the tables of a lake as streams of Spark
results      the table of a view or an alert: every batch in it once
publishing   results as keys on the bus
stillness    when one has stood still for too long; pure
running      one of them, as a query of Structured Streaming
standing     all of them: made, listed, dropped, and asked for
trial        an alert over history
"""
