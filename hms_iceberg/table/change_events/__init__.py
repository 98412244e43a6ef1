"""Events of a change stream applied to a table: of each key the newest one, exactly once."""
