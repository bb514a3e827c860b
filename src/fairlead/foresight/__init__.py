"""Pure questions to the scheduler: why does it wait, when will it start, whom would it evict, what if.

A question about the future is `decide` on another snapshot. Each answer names the assumptions that it rests on. Called
by `control` and by the command line; reads no clock, no file and no network.
"""
