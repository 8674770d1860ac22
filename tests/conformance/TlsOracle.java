import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import javax.security.auth.x500.X500Principal;
import org.apache.kafka.common.security.ssl.SslPrincipalMapper;

/**
 * Answers a line for each line: "name NAME" with what Java prints of a name in DER, and "map RULES NAME" with
 * what Kafka's rules make of a name. All words but the first are base64, and so is the answer; "!" is a refusal.
 */
public class TlsOracle {
    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        for (String line; (line = lines.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            String answer;
            try {
                answer = words[0].equals("name")
                    ? new X500Principal(Base64.getDecoder().decode(words[1])).getName()
                    : SslPrincipalMapper.fromRules(text(words[1])).getName(text(words[2]));
            } catch (Exception e) {
                System.out.println("!");
                continue;
            }
            System.out.println(Base64.getEncoder().encodeToString(answer.getBytes(StandardCharsets.UTF_8)));
        }
    }

    static String text(String word) {
        return new String(Base64.getDecoder().decode(word), StandardCharsets.UTF_8);
    }
}
