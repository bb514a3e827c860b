"""Commands for projects, departments, node pools, nodes and users."""
