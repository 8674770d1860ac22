// Down-conversion as the last Kafka that had it (3.9): needs kafka-clients 3.9 on the class path, with
// its codec libraries.
//   java -cp 'kafka-clients-3.9.0.jar:<jars>' DownConvertOracle.java <directory>
// reads the v2-*.bin files there and writes <name>.down0 and .down1, as a consumer at offset 1002 gets them.
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.common.record.MemoryRecords;
import org.apache.kafka.common.utils.Time;

public class DownConvertOracle {
    public static void main(String[] args) throws Exception {
        List<Path> files;
        try (Stream<Path> all = Files.list(Path.of(args[0]))) {
            files = all.filter(p -> p.getFileName().toString().matches("v2-.*\\.bin"))
                .filter(p -> !p.toString().contains("zstd") && !p.toString().contains("large")).sorted().collect(Collectors.toList());
        }
        for (Path file : files) {
            for (byte magic = 0; magic <= 1; magic++) {
                MemoryRecords records = MemoryRecords.readableRecords(ByteBuffer.wrap(Files.readAllBytes(file)));
                MemoryRecords down = (MemoryRecords) records.downConvert(magic, 1002L, Time.SYSTEM).records();
                ByteBuffer buffer = down.buffer().duplicate();
                byte[] content = new byte[buffer.remaining()];
                buffer.get(content);
                String name = file.getFileName().toString().replace(".bin", ".down" + magic);
                Files.write(file.resolveSibling(name), content);
            }
        }
    }
}
