"""The files of a journal: their formats, their names, and the disk operations behind them."""
