"""PyIceberg's module paths of the builders of changes; their requests to a REST catalog are not here."""
