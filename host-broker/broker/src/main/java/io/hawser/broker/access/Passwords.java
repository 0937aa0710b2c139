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
 * Passwords as they are stored: bcrypt, in the modular crypt form {@code $2y$cost$salthash}. It is chosen because its
 * time does not hang on a compiler that knows SHA's instructions, which the broker's C1 does not: PBKDF2 with as many
 * rounds as would be right takes it half a minute. Thread-safe; each call takes about a tenth of a second.
 */
public final class Passwords {
    /** bcrypt leaves out what is past it. */
    public static final int MAX_BYTES = 72;
    /** Fewer are guessed. */
    public static final int MIN_BYTES = 8;

    /** 2 to the power of this rounds. */
    private static final int COST = 10;
    /** A stored hash with a greater cost would keep the broker busy for seconds at each attempt. */
    private static final Pattern STORED = Pattern.compile("\\$2[aby]\\$(0[4-9]|1[0-4])\\$[./A-Za-z0-9]{53}");
    private static final SecureRandom RANDOM = new SecureRandom();
    private static final WildFlyElytronPasswordProvider PROVIDER = WildFlyElytronPasswordProvider.getInstance();

    private Passwords() {
    }

    /** Whether this is the stored form of a password. */
    public static boolean isStored(String text) {
        return STORED.matcher(text).matches();
    }

    /**
     * The stored form of a password.
     *
     * @throws IllegalArgumentException when it is shorter than {@link #MIN_BYTES} or longer than {@link #MAX_BYTES} in
     *     UTF-8, or has a NUL; the message does not tell it.
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

    /** Whether a password is the stored one; false also for one that none can be. */
    public static boolean matches(String stored, char[] password) {
        // Compared all the same: the time of the answer must not tell that a name is known.
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
