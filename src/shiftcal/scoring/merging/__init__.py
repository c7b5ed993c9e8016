"""Parts of a job put together again: their rows, or their statistics."""
