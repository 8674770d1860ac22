import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;
import java.util.Iterator;

import org.apache.kafka.common.record.internal.MemoryRecords;
import org.apache.kafka.common.record.internal.MutableRecordBatch;
import org.apache.kafka.common.record.internal.Record;
import org.apache.kafka.common.utils.internals.BufferSupplier;

/**
 * Apache Kafka's reading of batches as an oracle. Each line of input is a batch in hex; each line of
 * output is the value of its records joined, in hex, or the error of the one who read them.
 */
public class DecompressionOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            System.out.println(answer(HexFormat.of().parseHex(line)));
        }
    }

    static String answer(byte[] data) {
        StringBuilder out = new StringBuilder("ok ");
        try {
            MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(data));
            for (MutableRecordBatch batch : records.batches()) {
                batch.ensureValid();
                Iterator<Record> found = batch.streamingIterator(BufferSupplier.create());
                while (found.hasNext()) {
                    Record record = found.next();
                    byte[] value = new byte[record.valueSize()];
                    record.value().get(value);
                    out.append(HexFormat.of().formatHex(value));
                }
            }
        } catch (RuntimeException | Error error) {
            Throwable cause = error;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            return "error " + cause;
        }
        return out.toString();
    }
}
