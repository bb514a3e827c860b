"""How a command finds, starts and addresses a server, and how it reports errors.

Used by all commands that need a server. Knows no noun.
"""
