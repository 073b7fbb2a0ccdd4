"""Why a command ended, and what can be measured on this machine."""
