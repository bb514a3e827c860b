"""One file for each action, as in KAI; `search` is the loop that the three evicting ones share.

Called by `cycle` in KAI's order. They change the session only through its moves, which can be undone.
"""
