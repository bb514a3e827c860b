"""Commands on projects, departments, node pools, nodes and users."""
