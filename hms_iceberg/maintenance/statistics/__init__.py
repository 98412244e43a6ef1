"""Statistics that planners read: of whole tables, and of partitions."""
