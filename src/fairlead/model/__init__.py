"""The nouns: frozen data without I/O and without a clock. Everything else imports from here, this imports nothing."""
