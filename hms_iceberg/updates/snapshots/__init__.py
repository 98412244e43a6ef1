"""Changes of which snapshots a table has and names: expiry, rollback, cherry-picks, branches and tags."""
