"""Which nodes can take a task, and which of them is best.

Called by placement attempts. Looks at one task at a time and changes no queue.
"""
