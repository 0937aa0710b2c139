package io.hawser.broker.access;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.SecureRandom;
import java.security.spec.InvalidKeySpecException;
import java.util.Arrays;
import java.util.regex.Pattern;
import org.wildfly.security.password.Password;
import org.wildfly.security.password.PasswordFactory;
import org.wildfly.security.password.WildFlyElytronPasswordProvider;
import org.wildfly.security.password.interfaces.BCryptPassword;
import org.wildfly.security.password.spec.EncryptablePasswordSpec;
import org.wildfly.security.password.spec.IteratedSaltedPasswordAlgorithmSpec;
import org.wildfly.security.password.util.ModularCrypt;

/**
 * Hashes passwords with bcrypt, stored in the modular crypt form {@code $2y$cost$salthash}. PBKDF2 with a safe number
 * of rounds would take half a minute: the broker's C1 compiler does not use the processor's SHA instructions. bcrypt's
 * time does not depend on them. Thread-safe; each call takes about a tenth of a second.
 */
public final class Passwords {
    /** bcrypt ignores bytes past this limit. */
    public static final int MAX_BYTES = 72;
    /** Shorter passwords are easy to guess. */
    public static final int MIN_BYTES = 8;

    /** Two to the power of this is the number of rounds. */
    private static final int COST = 10;
    /** Rejects costs above 14: such a hash would occupy a processor for seconds at each attempt. */
    private static final Pattern STORED = Pattern.compile("\\$2[aby]\\$(0[4-9]|1[0-4])\\$[./A-Za-z0-9]{53}");
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final WildFlyElytronPasswordProvider PROVIDER = WildFlyElytronPasswordProvider.getInstance();

    private Passwords() {
    }

    /** Whether a text has the stored form of a password. */
    public static boolean isStored(String text) {
        return STORED.matcher(text).matches();
    }

    /**
     * Converts a password to its stored form.
     *
     * @throws IllegalArgumentException when it is shorter than {@link #MIN_BYTES} or longer than {@link #MAX_BYTES} in
     * UTF-8, or has a NUL; the message does not contain the password.
     */
    public static String store(char[] password) {
        int bytes = utf8Bytes(password);
        if (bytes < MIN_BYTES || bytes > MAX_BYTES || new String(password).indexOf('\0') >= 0) {
            throw new IllegalArgumentException("a password must have " + MIN_BYTES + " to " + MAX_BYTES
                + " bytes and no NUL: bytes=" + bytes);
        }
        byte[] salt = new byte[BCryptPassword.BCRYPT_SALT_SIZE];
        RANDOM.nextBytes(salt);
        try {
            PasswordFactory factory = PasswordFactory.getInstance(BCryptPassword.ALGORITHM_BCRYPT, PROVIDER);
            Password hashed = factory.generatePassword(new EncryptablePasswordSpec(password,
                new IteratedSaltedPasswordAlgorithmSpec(COST, salt)));
            return ModularCrypt.encodeAsString(hashed);
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    /** Whether a password matches the stored form; false for passwords that are too long. */
    public static boolean matches(String stored, char[] password) {
        // Too long passwords are compared as well: the time of an answer must not reveal that a name exists.
        char[] compared = utf8Bytes(password) > MAX_BYTES ? new char[0] : password;
        try {
            PasswordFactory factory = PasswordFactory.getInstance(BCryptPassword.ALGORITHM_BCRYPT, PROVIDER);
            Password hashed = factory.translate(ModularCrypt.decode(stored));
            return factory.verify(hashed, compared) && compared == password;
        } catch (InvalidKeySpecException e) {
            return false;
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException(e);
        }
    }

    private static int utf8Bytes(char[] password) {
        ByteBuffer bytes = StandardCharsets.UTF_8.encode(CharBuffer.wrap(password));
        int count = bytes.remaining();
        Arrays.fill(bytes.array(), (byte) 0);
        return count;
    }
}
