"""A partition's memory of its idempotent and transactional producers."""
