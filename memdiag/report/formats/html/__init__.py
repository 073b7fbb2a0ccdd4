"""The report as one HTML file with interactive charts, which needs no network."""
