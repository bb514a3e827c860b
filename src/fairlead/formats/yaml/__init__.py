"""Workload YAML: text, tree, fields, documents, inheritance, writing.

Called by `api`, by `fairlead apply` and by `convert`. Every mistake is reported with its position.
"""
