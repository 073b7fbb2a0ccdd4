"""JSON, Markdown and bare numbers."""
