"""Tables, colours, output formats, progress lines, times.

Used by all commands. Sends no request.
"""
