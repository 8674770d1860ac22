"""The parts of `storage.log_manager.LogManager`, each with its own state."""
