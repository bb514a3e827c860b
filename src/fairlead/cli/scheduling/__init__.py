"""The scheduler as a function of files: decide on a snapshot, run cases."""
