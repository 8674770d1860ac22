"""The places of Spark's temporary files, which stay when its processes are killed."""

import os
from pathlib import Path


def spark_variables(place: Path) -> dict[str, str]:
    """Return the environment variables by which Spark puts its temporary files into `place`."""
    return {"SPARK_LOCAL_DIRS": str(place), "SPARK_SUBMIT_OPTS": f"-Djava.io.tmpdir={place}"}


def spark_environment(directory: Path) -> dict[str, str]:
    """Return this process's environment, with Spark's temporary files in `directory`/tmp."""
    place = directory / "tmp"
    place.mkdir(parents=True, exist_ok=True)
    return {**os.environ, **spark_variables(place)}
