"""The same decision while the run goes on."""
