"""What the cluster's code raises when it cannot go on, with words for whoever asked; `__main__` prints them.

No SystemExit: a test that called it would not undo anything else that it had set up.
"""


class ClusterError(Exception):
    pass
