"""Reconciler, executor and organization sync: they plan with `plan`, carry out the steps, and retry.

Called by the engine. Every step is idempotent.
"""
