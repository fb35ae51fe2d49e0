"""Running the parts of `zenlake up` for months: restarts, disk budget, status, metrics over HTTP.

`parts`, `disk`, `telling`, `status`, `screen`, `openmetrics` and `requests` decide and are pure;
`child`, `reporting`, `listening` and `household` are the processes, pipes and sockets.
"""
