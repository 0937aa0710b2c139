import java.io.BufferedOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.LocalDateTime;
import java.util.Enumeration;
import java.util.HashSet;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.zip.CRC32;
import java.util.zip.ZipEntry;
import java.util.zip.ZipFile;
import java.util.zip.ZipOutputStream;

/**
 * Writes jars again, their entries uncompressed, at one time and without native libraries and constants of other
 * systems: an archive by xz is a third smaller of them so, and a JVM starts a little sooner. {@code make-distribution}
 * runs it from source.
 */
final class RepackJars {
    private static final LocalDateTime TIME = LocalDateTime.of(2026, 1, 1, 0, 0);
    private static final Pattern NATIVE = Pattern.compile(".*\\.(so|dll|dylib|jnilib|a)");
    private static final Pattern OURS = Pattern.compile(
        ".*(x86_64-Linux|linux-amd64|linux-x86_64)/[^/]*\\.so|META-INF/native/lib[a-z_]*_x86_64\\.so");

    // Classes of jnr-constants; it searches the folders linux and fake on x86-64 Linux.
    private static final Pattern FOREIGN_CONSTANTS = Pattern.compile(
        "jnr/constants/platform/(?!linux/[^/]*$|fake/)[^/]+/.*");

    private RepackJars() {
    }

    public static void main(String[] jars) throws IOException {
        for (String jar : jars) {
            repack(Path.of(jar));
        }
    }

    private static void repack(Path jar) throws IOException {
        Path part = jar.resolveSibling(jar.getFileName() + ".part");
        Set<String> names = new HashSet<>();
        int dropped = 0;
        int kept = 0;
        try (ZipFile from = new ZipFile(jar.toFile());
            ZipOutputStream to = new ZipOutputStream(new BufferedOutputStream(Files.newOutputStream(part)))) {
            to.setMethod(ZipOutputStream.STORED);
            // In the jar's own order, in which the manifest comes first.
            for (Enumeration<? extends ZipEntry> entries = from.entries(); entries.hasMoreElements();) {
                ZipEntry entry = entries.nextElement();
                if (!names.add(entry.getName())) {
                    continue; // a few jars have a file twice; the JVM takes the one that ZipFile gives
                }
                if (FOREIGN_CONSTANTS.matcher(entry.getName()).matches()) {
                    continue;
                }
                boolean isNative = NATIVE.matcher(entry.getName()).matches();
                if (isNative && !OURS.matcher(entry.getName()).matches()) {
                    dropped++;
                } else {
                    kept += isNative ? 1 : 0;
                    copy(from, entry, to);
                }
            }
        }
        if (dropped > 0 && kept == 0) {
            throw new IOException("no native library of Linux on x86-64 is left in " + jar);
        }
        Files.move(part, jar, StandardCopyOption.REPLACE_EXISTING);
    }

    private static void copy(ZipFile from, ZipEntry listed, ZipOutputStream to) throws IOException {
        ZipEntry entry = from.getEntry(listed.getName());
        byte[] bytes;
        try (InputStream in = from.getInputStream(entry)) {
            bytes = in.readAllBytes();
        }
        CRC32 sum = new CRC32();
        sum.update(bytes);
        ZipEntry stored = new ZipEntry(entry.getName());
        stored.setTimeLocal(TIME);
        stored.setSize(bytes.length);
        stored.setCompressedSize(bytes.length);
        stored.setCrc(sum.getValue());
        to.putNextEntry(stored);
        to.write(bytes);
        to.closeEntry();
    }
}
