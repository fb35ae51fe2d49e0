"""The HTTP server of a node, and who may ask it: what `rest` and `remote` share.

names       which hosts and origins a request may name; pure
heads       the headers of a request by name, read once; pure
users       users, passwords and tokens, and what each may do
few_lines   a bound on what strangers make the server write into the log
sockets     where a server listens, and the names by which it may be asked
server      a thread with a loop of its own, and the socket that it listens on
"""
