"""The source's interface to Spark: its name, its schema, its readers."""

from pyspark import __version__
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader
from pyspark.sql.types import StructType

from pipeline.source.archives import forget_archives
from pipeline.source.batch import LogReader, PushingLogReader
from pipeline.source.columns import columns_of, full_schema
from pipeline.source.options import BadOption, parse_options
from pipeline.source.streaming import LogStreamReader, RefusedStream, check_limits
from pipeline.source.telling import telling


class PyKafkaLogDataSource(DataSource):  # type: ignore[misc]
    """`spark.read.format("pykafkalog")` and `spark.readStream.format("pykafkalog")`."""

    @classmethod
    def name(cls) -> str:
        """The name for `format`."""
        return "pykafkalog"

    def schema(self) -> StructType:
        """Return the schema of a job that names no columns. Raises BadOption."""
        with telling():
            # Whether the query is a stream is not known yet. Options that are wrong in both kinds
            # raise here, where the job is built: a stream raises in a thread of Java.
            return full_schema(headers=parse_options(self.options, streaming=None).include_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return the reader of a batch query. Raises BadOption."""
        forget_archives()
        with telling():
            options = parse_options(self.options)
            kind = LogReader
            if options.push_down_predicate:
                if not hasattr(DataSourceReader, "pushFilters"):
                    raise BadOption(f"pushDownPredicate needs Spark 4.1; this is {__version__}")
                kind = PushingLogReader
            return kind(options, columns_of(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return the reader of a streaming query, whose methods raise BadOption for bad options."""
        forget_archives()
        try:
            options = parse_options(self.options, streaming=True)
            check_limits(options)
            return LogStreamReader(options, columns_of(schema))
        except BadOption as error:
            return RefusedStream(error)
