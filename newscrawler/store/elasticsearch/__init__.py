"""The article store in Elasticsearch."""
