"""Running the parts of `zenlake up` for months: restarts, disk budget, status, metrics over HTTP.

`parts`, `disk`, `throttle`, `status`, `status_alerts`, `screen`, `openmetrics` and `requests`
decide and are pure; `child`, `reporting`, `status_server` and `supervisor` are the processes,
pipes and sockets.
"""
