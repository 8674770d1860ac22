"""PySpark jobs that read from and write to the broker."""
