"""The attack campaign (`make attack`): memdiag under faults, and against another user.

Each file `on_NAME.py` holds one kind of attack. The others hold what the attacks share.
"""
