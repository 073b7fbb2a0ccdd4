"""memdiag's own recording: schema, writer, sidecar, downsampling."""
