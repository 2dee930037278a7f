"""The site from a real InfluxDB: what the spools give, but for what a database does not have."""


