"""The HTTP server of a node, and who may ask it: what `rest` and `remote` share.

names           which hosts and origins a request may name; pure
heads           the headers of a request by name, read once; pure
users           users, passwords and tokens, and what each may do
few_lines       a bound on what strangers make the server write into the log
limits          bytes, seconds and places that one server gives; pure
shares          a total, and the part of it that one address may hold; pure
request_head    the head of a request, strictly read; pure
request_parser  requests as they come in; pure
answer_pace     whether a client takes its answer fast enough; pure
connections     who is connected, and what each holds
faults          errors of our own while a request is read: counted, and answered
accepting       accepts connections one by one
sockets         where a server listens, and the names by which it may be asked
server          a thread with a loop of its own, and the socket that it listens on
"""
