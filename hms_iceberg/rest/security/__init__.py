"""Authentication, rights, and the locations that tables may have."""
