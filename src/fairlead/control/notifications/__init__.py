"""Notifications about workloads: rules, the deliveries that follow from events, and the channels that carry them."""
