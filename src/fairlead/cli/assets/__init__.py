"""Commands on assets, secrets and templates."""
