"""How a command finds, starts and addresses a server, and how it reports errors."""
