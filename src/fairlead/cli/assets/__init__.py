"""Commands for assets, secrets and templates."""
