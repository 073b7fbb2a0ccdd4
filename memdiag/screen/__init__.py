"""The live screen: a process of its own that draws what is measured, with Textual."""
