"""The declared fields of a spec, each declared once, and the rules between them.

Used by `kinds`, `formats`, `admission` and the engines. A field's text, flag and YAML name stand in its declaration.
"""
