package io.hawser.cuda.generator.model;

import java.util.List;
import java.util.Map;

/** A C type of the described functions; sizes are those of a 64-bit Unix. */
public sealed interface CType {
    /** Size in bytes. */
    int size();

    /** Alignment in bytes. */
    int alignment();

    /** Whether its bytes have the same meaning on both machines: it contains no pointer and no handle. */
    boolean plain();

    /** Its name in C. */
    String name();

    /** Kinds of numbers: their size and their type in Java. */
    enum Number {
        /** Signed 8 bits. */
        I8(1, "byte", "int8_t"),
        /** Unsigned 8 bits. */
        U8(1, "byte", "uint8_t"),
        /** Signed 16 bits. */
        I16(2, "short", "int16_t"),
        /** Unsigned 16 bits. */
        U16(2, "short", "uint16_t"),
        /** Signed 32 bits. */
        I32(4, "int", "int32_t"),
        /** Unsigned 32 bits. */
        U32(4, "int", "uint32_t"),
        /** Signed 64 bits. */
        I64(8, "long", "int64_t"),
        /** Unsigned 64 bits. */
        U64(8, "long", "uint64_t"),
        /** Single precision. */
        F32(4, "float", "float"),
        /** Double precision. */
        F64(8, "double", "double");

        private final int size;
        private final String javaName;
        private final String cName;

        Number(int size, String javaName, String cName) {
            this.size = size;
            this.javaName = javaName;
            this.cName = cName;
        }

        /** Size in bytes. */
        public int size() {
            return size;
        }

        /** Java's type of the same size. */
        public String javaName() {
            return javaName;
        }

        /** C's exact-width type. */
        public String cName() {
            return cName;
        }
    }

    /** A number. */
    record Scalar(String name, Number number) implements CType {
        @Override
        public int size() {
            return number.size();
        }

        @Override
        public int alignment() {
            return number.size();
        }

        @Override
        public boolean plain() {
            return true;
        }
    }

    /** An enumeration: an int. */
    record Enumeration(String name, String tag, Map<String, Long> values) implements CType {
        @Override
        public int size() {
            return 4;
        }

        @Override
        public int alignment() {
            return 4;
        }

        @Override
        public boolean plain() {
            return true;
        }
    }

    /** An opaque pointer; kind is null when it does not travel. */
    record Handle(String name, String tag, HandleKind kind) implements CType {
        @Override
        public int size() {
            return 8;
        }

        @Override
        public int alignment() {
            return 8;
        }

        @Override
        public boolean plain() {
            return false;
        }
    }

    /** A pointer; {@code name} is the whole type. */
    record Pointer(String name) implements CType {
        @Override
        public int size() {
            return 8;
        }

        @Override
        public int alignment() {
            return 8;
        }

        @Override
        public boolean plain() {
            return false;
        }
    }

    /**
     * A field of a structure; an anonymous member has no name. {@code elements} is 0 unless the field is an array.
     * {@code identity}: whether calls that differ in this field alone are the same to {@code probe}. {@code address}:
     * an address of device memory, of which only the alignment counts there, and whether it is NULL.
     */
    record Field(String name, CType type, int elements, int offset, boolean identity, boolean address) {
        /** Whether it is an anonymous struct or union, whose fields belong to the enclosing structure. */
        public boolean anonymous() {
            return name.isEmpty();
        }

        /** Its size in bytes. */
        public int size() {
            return Math.max(elements, 1) * type.size();
        }
    }

    /**
     * A structure or union.
     *
     * @param name null for one without a name inside another.
     * @param record whether Java receives it as an object: it has only numbers and other records, without gaps.
     */
    record Structure(String name, String tag, boolean union, boolean record, List<Field> fields, int size,
        int alignment) implements CType {
        /** The field of this name, or null. */
        public Field field(String wanted) {
            return fields.stream().filter(f -> f.name().equals(wanted)).findFirst().orElse(null);
        }

        @Override
        public boolean plain() {
            return fields.stream().allMatch(f -> f.type().plain());
        }
    }
}
