"""Thin adapters to other tools. Each loads nothing heavy until it is used."""
