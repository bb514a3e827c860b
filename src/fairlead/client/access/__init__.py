"""Which server a client talks to, and as whom: addresses, certificates, tokens, this machine's server."""
