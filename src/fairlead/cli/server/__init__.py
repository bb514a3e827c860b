"""Commands for the server on this machine, for clusters, and for the command line's own settings."""
