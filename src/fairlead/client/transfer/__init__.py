"""Takes an organization, its people, assets, templates, policies and waiting workloads from one server to another.

The source is a Fairlead server, a Run:ai server of the same REST interface, or a file. Called by the command line.
"""
