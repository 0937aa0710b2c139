package io.hawser.worker.calls;

import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;

/** The attributes of a content, as hws_dnn_attribute_t in hws_cudnn.h has them. */
final class CudnnContent {
    /** Bytes before the values of an attribute. */
    static final int HEAD_BYTES = 16;

    private static final int BOOLEAN = cudnnBackendAttributeType_t.CUDNN_TYPE_BOOLEAN;
    private static final int FRACTION_BYTES = 16;

    private CudnnContent() {
    }

    /** An attribute, with its values in the record. */
    record Attribute(int name, int type, long count, MemorySegment values) {
        long number(int index) {
            return switch (typeBytes(type)) {
                case Byte.BYTES -> values.get(ValueLayout.JAVA_BYTE, index);
                case Integer.BYTES -> values.get(ValueLayout.JAVA_INT_UNALIGNED, (long) index * Integer.BYTES);
                default -> values.get(ValueLayout.JAVA_LONG_UNALIGNED, (long) index * Long.BYTES);
            };
        }

        long[] numbers() {
            long[] numbers = new long[(int) count];
            for (int i = 0; i < numbers.length; i++) {
                numbers[i] = number(i);
            }
            return numbers;
        }

        double[] reals() {
            double[] reals = new double[(int) count];
            for (int i = 0; i < reals.length; i++) {
                reals[i] = Double.longBitsToDouble(number(i));
            }
            return reals;
        }
    }

    /** Bytes of a value of an attribute; 0 for an unknown type. */
    static int typeBytes(int type) {
        return switch (type) {
            case BOOLEAN, cudnnBackendAttributeType_t.CUDNN_TYPE_CHAR -> Byte.BYTES;
            case cudnnBackendAttributeType_t.CUDNN_TYPE_HANDLE, cudnnBackendAttributeType_t.CUDNN_TYPE_INT64,
                cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE, cudnnBackendAttributeType_t.CUDNN_TYPE_VOID_PTR,
                cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR -> Long.BYTES;
            case cudnnBackendAttributeType_t.CUDNN_TYPE_FRACTION -> FRACTION_BYTES;
            default -> type >= 0 && type <= cudnnBackendAttributeType_t.CUDNN_TYPE_MOE_GROUPED_MATMUL_MODE
                ? Integer.BYTES : 0;
        };
    }

    /** The attributes of a guest's content; null if it is malformed. */
    static List<Attribute> read(MemorySegment content) {
        List<Attribute> attributes = new ArrayList<>();
        long at = 0;
        while (at < content.byteSize()) {
            if (content.byteSize() - at < HEAD_BYTES) {
                return null;
            }
            int name = content.get(ValueLayout.JAVA_INT_UNALIGNED, at);
            int type = content.get(ValueLayout.JAVA_INT_UNALIGNED, at + Integer.BYTES);
            long count = content.get(ValueLayout.JAVA_LONG_UNALIGNED, at + Long.BYTES);
            long room = content.byteSize() - at - HEAD_BYTES;
            int bytes = typeBytes(type);
            if (bytes == 0 || count < 0 || count > room / bytes) {
                return null;
            }
            long length = count * bytes;
            attributes.add(new Attribute(name, type, count, content.asSlice(at + HEAD_BYTES, length)));
            at += HEAD_BYTES + (length + Long.BYTES - 1) / Long.BYTES * Long.BYTES;
        }
        return at == content.byteSize() ? attributes : null;
    }

    /** The attribute with a name; null for none. */
    static Attribute find(List<Attribute> attributes, int name) {
        return attributes.stream().filter(a -> a.name == name).findFirst().orElse(null);
    }

    /** The first number of an attribute. */
    static long number(List<Attribute> attributes, int name, long otherwise) {
        Attribute found = find(attributes, name);
        return found == null || found.count == 0 || typeBytes(found.type) > Long.BYTES ? otherwise : found.number(0);
    }
}
