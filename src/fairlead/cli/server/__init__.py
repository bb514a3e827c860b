"""Commands on the server of this machine, and on this command's own set-up."""
