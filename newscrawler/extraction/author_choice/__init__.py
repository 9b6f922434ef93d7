"""Who wrote a page: candidates, what describes them, learned weights. Pure."""
