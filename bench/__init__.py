"""What is measured: each number with its median, its spread and the goal that it is held against."""
