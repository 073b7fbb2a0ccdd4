"""Projections, limits, capacity, budgets and how much longer to run."""
