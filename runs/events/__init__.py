"""The log: typed events, the one writer, the stream."""
