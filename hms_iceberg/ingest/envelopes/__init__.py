"""The envelopes of events: bytes decoded, and the change that they make to a row."""
