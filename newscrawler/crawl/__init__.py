"""What a running worker does, without Scrapy: joins the services for the adapters that call it."""
