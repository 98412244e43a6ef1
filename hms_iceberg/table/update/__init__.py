"""PyIceberg's doors to the builders of changes; what they send to a REST catalog is not here."""
