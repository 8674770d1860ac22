"""The source's interface to Spark: its name, its schema, its readers."""

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from pipeline.source.archives import forget_archives
from pipeline.source.batch import LogReader
from pipeline.source.columns import columns_of, full_schema
from pipeline.source.options import parse_options
from pipeline.source.streaming import LogStreamReader


class PyKafkaLogDataSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("pykafkalog")` and `spark.readStream.format("pykafkalog")`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "pykafkalog"

    def schema(self) -> StructType:
        """Return the schema of a job that names no columns."""
        text = self.options.get("includeHeaders", "false")
        return full_schema(headers=text.lower() == "true")

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query. Raises BadOption."""
        forget_archives()
        return LogReader(parse_options(self.options), columns_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query. Raises BadOption."""
        forget_archives()
        return LogStreamReader(parse_options(self.options, streaming=True), columns_of(schema))
