"""Commands that run the scheduler on files: snapshots, queues and test cases."""
