"""Published guides as data: tables, dialects, releases, published figures."""
