"""The transaction coordinator: owners of transactional ids, commits and aborts, and markers."""
