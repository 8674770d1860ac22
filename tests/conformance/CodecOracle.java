import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.ByteBuffer;
import java.util.HexFormat;

import com.fasterxml.jackson.databind.JsonNode;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Apache Kafka's generated messages as an oracle. Each line of input is a class name, a version and
 * the message in hex; each line of output is the message as Kafka writes it again, in hex, and as JSON.
 */
public class CodecOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] parts = line.split(" ", 3);
            System.out.println(answer(parts[0], Short.parseShort(parts[1]), HexFormat.of().parseHex(parts[2])));
        }
    }

    static String answer(String name, short version, byte[] data) {
        try {
            Message message = (Message) Class.forName(name).getDeclaredConstructor().newInstance();
            ByteBuffer buffer = ByteBuffer.wrap(data);
            message.read(new ByteBufferAccessor(buffer), version);
            if (buffer.hasRemaining()) {
                return "error " + buffer.remaining() + " bytes left over";
            }
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer out = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(out), cache, version);
            JsonNode json = (JsonNode) Class.forName(name + "JsonConverter")
                .getMethod("write", message.getClass(), short.class, boolean.class)
                .invoke(null, message, version, false);
            return HexFormat.of().formatHex(out.array()) + " " + json;
        } catch (ReflectiveOperationException | RuntimeException error) {
            Throwable cause = error.getCause() == null ? error : error.getCause();
            return "error " + cause;
        }
    }
}
