"""How clients reach the files of a table: properties, credentials for its folder only, requests signed for them."""
