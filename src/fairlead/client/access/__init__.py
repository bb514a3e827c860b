"""Which server a client talks to, and as whom: addresses, certificates, tokens, this machine's server.

Used by the clients and by the command line, so that both follow the same rules. Reads files; sends no API request but
for a token.
"""
