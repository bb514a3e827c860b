"""Commands on files: apply, diff, convert, explain."""
