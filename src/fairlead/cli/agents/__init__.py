"""Commands for programs that use Fairlead for somebody: the server of tools for coding agents."""
