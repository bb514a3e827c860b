"""Tables, colours, output formats, times."""
