"""Commands that open something in a pod: commands, terminals, ports, files."""
