package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.model.CType.Field;
import io.hawser.cuda.generator.model.CType.Structure;
import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.model.Wire.Slot;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.GeneralSecurityException;
import java.security.MessageDigest;
import java.util.Comparator;
import java.util.List;

/** The whole description. */
public record Description(List<Library> libraries) {
    private static final Comparator<ApiFunction> BY_OPCODE = Comparator.comparing(ApiFunction::opcode);

    /** Kinds of handles of all libraries, by number. */
    public List<HandleKind> kinds() {
        return libraries.stream().flatMap(l -> l.types().kinds().stream())
            .sorted((a, b) -> Integer.compare(a.number(), b.number())).toList();
    }

    /** Result type of the first library; the status of a record has this type. */
    public Library library(String name) {
        return libraries.stream().filter(l -> l.name().equals(name)).findFirst()
            .orElseThrow(() -> new DescriptionException(name + ": a library must be described"));
    }

    /**
     * Number that both ends compare at the handshake. It changes with every change to the bytes of a record: opcodes,
     * reply kinds, credit, and the place, size and limit of each value. Groups, their order, the names of values and
     * the grouping of values in structures do not affect it.
     */
    public long hash() {
        StringBuilder text = new StringBuilder();
        kinds().forEach(kind -> text.append(kind.name()).append('=').append(kind.number()).append('\n'));
        for (Library library : libraries) {
            for (ApiFunction function : library.travelling().stream().sorted(BY_OPCODE).toList()) {
                text.append(Integer.toHexString(function.opcode())).append(' ').append(function.symbol()).append(' ')
                    .append(function.reply()).append(function.credited() ? " credited" : "");
                function.request().slots().forEach(slot -> append(text, slot));
                text.append(" ->");
                function.answer().slots().forEach(slot -> append(text, slot));
                text.append('\n');
            }
        }
        try {
            byte[] digest = MessageDigest.getInstance("SHA-256").digest(text.toString()
                .getBytes(StandardCharsets.UTF_8));
            return ByteBuffer.wrap(digest).getLong();
        } catch (GeneralSecurityException e) {
            throw new IllegalStateException("every Java platform has SHA-256", e);
        }
    }

    private static void append(StringBuilder text, Slot slot) {
        Param param = slot.param();
        if (param.value() instanceof Structure structure && !param.isBuffer()) {
            append(text, structure, slot.offset());
            return;
        }
        Shape shape = param.shape() == Shape.OUT_NUMBER ? Shape.NUMBER : param.shape();
        text.append(' ').append(shape).append('@').append(slot.offset()).append(':').append(param.fixedSize());
        if (param.isBuffer()) {
            text.append("<=").append(param.max());
        }
    }

    /** A structure counts as its numbers, so that it has the hash of a list of parameters with the same bytes. */
    private static void append(StringBuilder text, Structure structure, int offset) {
        for (Field field : structure.fields()) {
            for (int i = 0; i < Math.max(field.elements(), 1); i++) {
                int at = offset + field.offset() + i * field.type().size();
                if (field.type() instanceof Structure inner) {
                    append(text, inner, at);
                } else {
                    text.append(' ').append(Shape.NUMBER).append('@').append(at).append(':')
                        .append(field.type().size());
                }
            }
        }
    }
}
