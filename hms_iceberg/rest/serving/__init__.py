"""Parts that all endpoints share: requests, answers, errors, limits, idempotency."""
