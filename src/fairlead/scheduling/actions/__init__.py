"""One file for each action, as in KAI; `search` is the loop that the three evicting ones share.

Called by `cycle` in KAI's order.
"""
