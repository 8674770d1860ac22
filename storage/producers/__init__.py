"""What a partition remembers of its idempotent and transactional producers."""
