"""Values of events: what type they have where they come from, and how they fit a table's columns."""
