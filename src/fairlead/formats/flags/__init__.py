"""Command-line flags as data, and a spec written as a command line.

Called by the generator of the command line, by `convert` and by the server. Flags follow from the declared fields.
"""
