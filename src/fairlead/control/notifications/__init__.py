"""Notifications about workloads: rules, the deliveries that follow from events, and the channels that carry them.

The API calls `rules.py`, and `app` starts the notifier in `dispatch.py`. Nothing here changes workloads.
"""
