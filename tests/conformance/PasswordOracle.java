import java.util.Scanner;
import org.apache.kafka.common.config.types.Password;
import org.apache.kafka.security.PasswordEncoder;

/**
 * Kafka 3.9's encoder of passwords in ZooKeeper. Arguments: the secret, and a password to encrypt with each
 * cipher; decrypts each line of the standard input. (tests/golden/passwords is what it printed once.)
 */
public class PasswordOracle {
    public static void main(String[] args) throws Exception {
        Password secret = new Password(args[0]);
        for (String cipher : new String[] {"AES/CBC/PKCS5Padding", "AES/GCM/NoPadding"})
            for (int bits : new int[] {128, 256}) {
                String factory = bits == 128 ? null : "PBKDF2WithHmacSHA256";
                System.out.println(PasswordEncoder.encrypting(secret, factory, cipher, bits, 4096).encode(new Password(args[1])));
            }
        Scanner lines = new Scanner(System.in);
        while (lines.hasNextLine()) {
            String line = lines.nextLine();
            // How parameters are encoded follows the configured cipher, not the value's.
            String cipher = line.contains("GCM") ? "AES/GCM/NoPadding" : "AES/CBC/PKCS5Padding";
            System.out.println(PasswordEncoder.encrypting(secret, null, cipher, 128, 4096).decode(line).value());
        }
    }
}
