package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_SUCCESS;

import io.hawser.cuda.backend.CudnnBackend;
import io.hawser.cuda.backend.CudnnBackend.Content;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cudnn.GraphManualCalls;
import io.hawser.cuda.generated.cudnn.GraphReplies;
import io.hawser.cuda.generated.cudnn.HwsDnnBinding;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeName_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendAttributeType_t;
import io.hawser.cuda.generated.cudnn.cudnnBackendDescriptorType_t;
import io.hawser.worker.calls.CudnnContent.Attribute;
import io.hawser.worker.calls.CudnnObject.Origin;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Journal;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** cuDNN: objects by the contents that a guest sends, questions about them, and the execution of plans. */
final class CudnnGraphs implements GraphManualCalls<Call> {
    /** Objects of a session; a guest chooses their number. Its library keeps 4096 that no descriptor uses. */
    static final int MAX_OBJECTS = 65536;

    private static final int MAX_REQUESTED = 4096; // descriptors that a question returns
    private static final int HANDLE = cudnnBackendAttributeType_t.CUDNN_TYPE_HANDLE;
    private static final int DESCRIPTOR = cudnnBackendAttributeType_t.CUDNN_TYPE_BACKEND_DESCRIPTOR;
    private static final int POINTER = cudnnBackendAttributeType_t.CUDNN_TYPE_VOID_PTR;
    private static final int INT64 = cudnnBackendAttributeType_t.CUDNN_TYPE_INT64;
    private static final int PACK = cudnnBackendDescriptorType_t.CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    private static final int PLAN = cudnnBackendDescriptorType_t.CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR;
    // The attributes of an older descriptor (hws_cudnn.h).
    private static final int NUMBERS = 1;
    private static final int REALS = 2;
    private static final int PARTS = 3;
    private static final int HANDLES = 4;
    private static final int ADDRESS = 5;

    private final Journal journal;
    private final CudnnCalls calls;
    private final CudnnBackend cudnn; // null: the machine has no library
    private final Map<Long, CudnnObject> objects = new HashMap<>();

    CudnnGraphs(CudnnCalls calls, CudnnBackend cudnn, Journal journal) {
        this.journal = journal;
        this.calls = calls;
        this.cudnn = cudnn;
    }

    /** The object with a guest's id; null for none. */
    CudnnObject find(long id) {
        return objects.get(id);
    }

    /** Number of objects that the guest uses. */
    int size() {
        return objects.size();
    }

    /** Kinds that a guest may make: not packs, which stay in the guest, nor those that name the machine's devices. */
    private static boolean isAllowed(int kind) {
        return kind >= 0 && kind <= cudnnBackendDescriptorType_t.CUDNN_BACKEND_OPERATION_SDPA_BWD_DESCRIPTOR
            && kind != PACK && kind != cudnnBackendDescriptorType_t.CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR;
    }

    @Override
    public void hwsDnnMake(Call call, long id, int kind, int contentBytes, MemorySegment content) {
        if (cudnn == null) {
            call.fail(CUDNN_STATUS_NOT_SUPPORTED);
            return;
        }
        List<Attribute> attributes = CudnnContent.read(content);
        Kind older = Kind.of(kind);
        if (attributes == null || id <= 0 || objects.containsKey(id) || older == null && !isAllowed(kind)) {
            call.fatal("a content must be whole, of a known kind and with a new id: id=" + id + " kind=" + kind);
            return;
        }
        if (objects.size() >= MAX_OBJECTS) {
            call.fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
            return;
        }
        List<CudnnObject> parts = parts(call, attributes, older != null);
        if (parts == null) {
            return;
        }
        if (older != null) {
            makeOlder(call, id, older, attributes, parts);
        } else {
            makeDescriptor(call, id, kind, attributes, parts);
        }
    }

    private static Origin origin(Call call, long firstId, int count) {
        Origin origin = new Origin(firstId, count);
        call.keepUntil(origin.number());
        return origin;
    }

    /** The objects that the attributes name; null when the call has ended. */
    private List<CudnnObject> parts(Call call, List<Attribute> attributes, boolean areOlder) {
        List<CudnnObject> parts = new ArrayList<>();
        for (Attribute attribute : attributes) {
            if (attribute.type() == POINTER) {
                call.fatal("a content has no pointers: attribute=" + attribute.name());
                return null;
            }
            for (int i = 0; attribute.type() == DESCRIPTOR && i < attribute.count(); i++) {
                CudnnObject part = objects.get(attribute.number(i));
                if (part == null || part.older() != (areOlder ? Kind.DROPOUT : null)) {
                    call.fatal("a part of a content must have been made: id=" + attribute.number(i));
                    return null;
                }
                parts.add(part);
            }
        }
        return parts;
    }

    private void makeOlder(Call call, long id, Kind kind, List<Attribute> attributes, List<CudnnObject> parts) {
        Attribute numbers = CudnnContent.find(attributes, NUMBERS);
        Attribute reals = CudnnContent.find(attributes, REALS);
        Attribute part = CudnnContent.find(attributes, PARTS);
        Attribute handle = CudnnContent.find(attributes, HANDLES);
        Attribute address = CudnnContent.find(attributes, ADDRESS);
        boolean isTyped = numbers != null && numbers.type() == INT64
            && reals != null && reals.type() == cudnnBackendAttributeType_t.CUDNN_TYPE_DOUBLE
            && (part == null || part.type() == DESCRIPTOR && part.count() == 1)
            && (handle == null || handle.type() == HANDLE && handle.count() == 1)
            && (address == null || address.type() == INT64 && address.count() == 1);
        if (!isTyped) {
            call.fatal("the attributes of an older descriptor have fixed types: kind=" + kind);
            return;
        }
        long made = handle == null ? 0 : call.handle(HandleKind.CUDNN, handle.number(0));
        if (call.isRejected()) {
            return;
        }
        Content content = new Content(kind, numbers.numbers(), reals.reals(),
            parts.isEmpty() ? 0 : parts.getFirst().made(), made, address == null ? 0 : address.number(0));
        if (!CudnnObject.isWhole(content)) {
            call.fatal("an older descriptor must have all its numbers: kind=" + kind);
            return;
        }
        if (content.address() != 0 && !call.checkDevice(content.address(), content.numbers()[0])) {
            return; // the states of a dropout
        }
        MemorySegment out = call.scratch(Long.BYTES);
        int status = cudnn.make(content, out);
        if (status == CUDNN_STATUS_SUCCESS) {
            objects.put(id, new CudnnObject(origin(call, id, 1), content, out.get(ValueLayout.JAVA_LONG, 0), parts));
        }
        call.finish(status);
    }

    private void makeDescriptor(Call call, long id, int kind, List<Attribute> attributes, List<CudnnObject> parts) {
        MemorySegment out = call.scratch(Long.BYTES);
        int status = cudnn.createDescriptor(kind, out);
        if (status != CUDNN_STATUS_SUCCESS) {
            call.fail(status);
            return;
        }
        long made = out.get(ValueLayout.JAVA_LONG, 0);
        try (Arena arena = Arena.ofConfined()) {
            for (int i = 0; i < attributes.size() && status == CUDNN_STATUS_SUCCESS; i++) {
                Attribute attribute = attributes.get(i);
                MemorySegment values = values(call, attribute, arena);
                if (values == null) {
                    cudnn.destroyDescriptor(made);
                    return;
                }
                // A plan from a text has no graph, so nothing could be checked of its tensors.
                status = attribute.name() == cudnnBackendAttributeName_t.CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION
                    ? CUDNN_STATUS_NOT_SUPPORTED
                    : cudnn.setAttribute(made, attribute.name(), attribute.type(), attribute.count(), values);
            }
        }
        status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.finalizeDescriptor(made);
        if (status == CUDNN_STATUS_SUCCESS) {
            objects.put(id, new CudnnObject(origin(call, id, 1), kind, made, parts, attributes));
        } else {
            cudnn.destroyDescriptor(made);
        }
        call.finish(status);
    }

    /** An attribute's values for the library: handles and descriptors are its own. Null when the call has ended. */
    private MemorySegment values(Call call, Attribute attribute, Arena arena) {
        MemorySegment values = arena.allocate(Math.max(Long.BYTES, attribute.values().byteSize()), 2 * Long.BYTES);
        MemorySegment.copy(attribute.values(), 0, values, 0, attribute.values().byteSize());
        for (int i = 0; i < attribute.count(); i++) {
            long id = attribute.type() == HANDLE || attribute.type() == DESCRIPTOR ? attribute.number(i) : 0;
            if (attribute.type() == HANDLE && id != 0) {
                values.setAtIndex(ValueLayout.JAVA_LONG, i, call.handle(HandleKind.CUDNN, id));
                if (call.isRejected()) {
                    return null;
                }
            } else if (attribute.type() == DESCRIPTOR) {
                values.setAtIndex(ValueLayout.JAVA_LONG, i, objects.get(id).made()); // parts() has found each
            }
        }
        return values;
    }

    @Override
    public void hwsDnnDrop(Call call, long id) {
        CudnnObject object = objects.remove(id);
        if (object == null) {
            call.fatal("an object that is dropped must have been made: id=" + id);
            return;
        }
        release(object);
        if (object.origin().isOver()) {
            call.leavesNothing();
        } else { // another object uses it, or has come from the same call
            call.keepUntil(object.origin().number());
        }
        call.finish(CUDNN_STATUS_SUCCESS);
    }

    private void release(CudnnObject object) {
        if (!object.release()) {
            return;
        }
        if (object.origin().end()) {
            journal.forget(object.origin().number());
        }
        if (object.older() != null) {
            cudnn.destroy(object.older(), object.made());
        } else {
            cudnn.destroyDescriptor(object.made());
        }
        object.parts().forEach(this::release); // as deep as a plan is above its tensors
    }

    @Override
    public void hwsDnnAsk(Call call, long id, int attribute, int type_, int requested, int resultKind, long firstId,
        int valueBytes) {
        CudnnObject object = objects.get(id);
        if (object == null || object.older() != null) {
            call.fatal("an object that is asked must have been made: id=" + id);
            return;
        }
        if (type_ == DESCRIPTOR) {
            askObjects(call, object, attribute, requested, resultKind, firstId);
            return;
        }
        call.leavesNothing();
        long bytes = (long) requested * CudnnContent.typeBytes(type_);
        if (requested < 0 || type_ == HANDLE || type_ == POINTER || CudnnContent.typeBytes(type_) == 0
            || bytes != valueBytes) {
            call.fatal("a question has the size of its answer: type=" + type_ + " requested=" + requested);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment values = arena.allocate(Math.max(1, bytes), 2 * Long.BYTES);
            int status = cudnn.getAttribute(object.made(), attribute, type_, requested, count,
                requested == 0 ? MemorySegment.NULL : values);
            if (status == CUDNN_STATUS_SUCCESS) {
                GraphReplies.hwsDnnAsk(call.reply(), count.get(ValueLayout.JAVA_LONG, 0), values.asSlice(0, bytes));
            }
            call.finish(status);
        }
    }

    private void askObjects(Call call, CudnnObject object, int attribute, int requested, int kind, long firstId) {
        boolean isFree = requested >= 0 && requested <= MAX_REQUESTED && (requested == 0 || isAllowed(kind)
            && firstId > 0 && firstId <= Long.MAX_VALUE - MAX_REQUESTED);
        for (int i = 0; isFree && i < requested; i++) {
            isFree = !objects.containsKey(firstId + i);
        }
        if (!isFree) {
            call.fatal("results of a question need new ids and a known kind: requested=" + requested + " kind=" + kind);
            return;
        }
        if (objects.size() + requested > MAX_OBJECTS) {
            call.fail(CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED);
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment count = arena.allocate(ValueLayout.JAVA_LONG);
            MemorySegment results = arena.allocate(ValueLayout.JAVA_LONG, Math.max(1, requested));
            int made = 0;
            int status = CUDNN_STATUS_SUCCESS;
            while (made < requested && status == CUDNN_STATUS_SUCCESS) {
                status = cudnn.createDescriptor(kind, results.asSlice((long) made * Long.BYTES, Long.BYTES));
                made += status == CUDNN_STATUS_SUCCESS ? 1 : 0;
            }
            status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.getAttribute(object.made(), attribute, DESCRIPTOR,
                requested, count, requested == 0 ? MemorySegment.NULL : results);
            long answered = count.get(ValueLayout.JAVA_LONG, 0);
            int found = status == CUDNN_STATUS_SUCCESS ? Math.clamp(answered, 0, made) : 0;
            Origin origin = null;
            if (found > 0) {
                origin = origin(call, firstId, found);
            } else {
                call.leavesNothing();
            }
            for (int i = 0; i < made; i++) {
                long result = results.getAtIndex(ValueLayout.JAVA_LONG, i);
                if (i < found) {
                    objects.put(firstId + i, new CudnnObject(origin, kind, result, List.of(object), List.of()));
                } else {
                    cudnn.destroyDescriptor(result);
                }
            }
            if (status == CUDNN_STATUS_SUCCESS) {
                GraphReplies.hwsDnnAsk(call.reply(), answered, MemorySegment.NULL);
            }
            call.finish(status);
        }
    }

    @Override
    public void hwsDnnExecute(Call call, MemorySegment handle, long plan, long workspace, int bindingBytes,
        MemorySegment bindings) {
        CudnnObject object = objects.get(plan);
        if (object == null || object.kind() != PLAN || bindings.byteSize() % HwsDnnBinding.BYTES != 0) {
            call.fatal("an execution needs a plan and whole bindings: plan=" + plan + " bytes=" + bindingBytes);
            return;
        }
        long made = calls.handle(call, handle, true);
        if (call.isRejected()) {
            return;
        }
        if (object.tensors() == null) {
            call.fail(CUDNN_STATUS_NOT_SUPPORTED);
            return;
        }
        int status = askWorkspace(call, object);
        if (status != CUDNN_STATUS_SUCCESS) {
            call.fail(status);
            return;
        }
        int count = (int) (bindings.byteSize() / HwsDnnBinding.BYTES);
        MemorySegment uids = call.scratch(Math.max(1, count) * (long) Long.BYTES);
        MemorySegment pointers = call.scratch(Math.max(1, count) * (long) Long.BYTES);
        for (int i = 0; i < count; i++) {
            MemorySegment binding = bindings.asSlice(i * (long) HwsDnnBinding.BYTES, HwsDnnBinding.BYTES);
            if (!bind(call, object, binding, uids, pointers, i)) {
                return;
            }
        }
        if (!call.checkDevice(workspace, object.workspaceBytes())) {
            return;
        }
        MemorySegment space = call.scratch(Long.BYTES);
        space.set(ValueLayout.JAVA_LONG, 0, object.workspaceBytes() == 0 ? 0 : workspace);
        call.finish(execute(made, object.made(), count, uids, pointers, space, call.scratch(Long.BYTES)));
    }

    /** Checks a tensor's memory, or the size of its number. Returns whether it is right; else the call has ended. */
    private static boolean bind(Call call, CudnnObject plan, MemorySegment binding, MemorySegment uids,
        MemorySegment pointers, int index) {
        long uid = binding.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsDnnBinding.UID_OFFSET);
        long valueBytes = binding.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsDnnBinding.VALUE_BYTES_OFFSET);
        CudnnTensor tensor = plan.tensors().get(uid);
        long wanted = tensor != null && tensor.isByValue() ? tensor.valueBytes() : 0;
        if (valueBytes != wanted) { // the library would follow the guest's number as an address on the host
            call.fatal("a tensor by value has the bytes of its type: uid=" + uid + " bytes=" + valueBytes);
            return false;
        }
        long address;
        if (wanted == 0) {
            address = binding.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsDnnBinding.DATA_OFFSET);
            long bytes = tensor == null || tensor.isPacked() ? 1 : tensor.bytes();
            if (address != 0 && !call.checkDevice(address, bytes)) {
                return false;
            }
        } else {
            MemorySegment value = call.scratch(2L * Long.BYTES);
            MemorySegment.copy(binding, HwsDnnBinding.DATA_OFFSET, value, 0, 2L * Long.BYTES);
            address = value.address();
        }
        uids.setAtIndex(ValueLayout.JAVA_LONG, index, uid);
        pointers.setAtIndex(ValueLayout.JAVA_LONG, index, address);
        return true;
    }

    private int askWorkspace(Call call, CudnnObject plan) {
        if (plan.workspaceBytes() >= 0) {
            return CUDNN_STATUS_SUCCESS;
        }
        MemorySegment count = call.scratch(Long.BYTES);
        MemorySegment bytes = call.scratch(Long.BYTES);
        int status = cudnn.getAttribute(plan.made(),
            cudnnBackendAttributeName_t.CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE, INT64, 1, count, bytes);
        if (status == CUDNN_STATUS_SUCCESS) {
            plan.workspaceBytes(Math.max(0, bytes.get(ValueLayout.JAVA_LONG, 0)));
        }
        return status;
    }

    private int execute(long handle, long plan, int count, MemorySegment uids, MemorySegment pointers,
        MemorySegment workspace, MemorySegment out) {
        int status = cudnn.createDescriptor(PACK, out);
        if (status != CUDNN_STATUS_SUCCESS) {
            return status;
        }
        long pack = out.get(ValueLayout.JAVA_LONG, 0);
        status = cudnn.setAttribute(pack, cudnnBackendAttributeName_t.CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, INT64, count,
            uids);
        status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.setAttribute(pack,
            cudnnBackendAttributeName_t.CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, POINTER, count, pointers);
        status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.setAttribute(pack,
            cudnnBackendAttributeName_t.CUDNN_ATTR_VARIANT_PACK_WORKSPACE, POINTER, 1, workspace);
        status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.finalizeDescriptor(pack);
        status = status != CUDNN_STATUS_SUCCESS ? status : cudnn.execute(handle, plan, pack);
        cudnn.destroyDescriptor(pack);
        return status;
    }
}
