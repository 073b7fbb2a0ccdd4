"""The Python interface: `import memdiag` loads a module of it when one of its names is used."""
