"""The numbers of the paper of 2018, measured: `python -m bench.xrce`."""
