"""The command line: the table of nouns, commands, flags, help.

Commands talk to the server through `client`. The generator belongs to the build and may import the server's packages;
everything else here imports little, because every command pays for it.
"""
