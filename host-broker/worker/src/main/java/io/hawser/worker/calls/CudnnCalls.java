package io.hawser.worker.calls;

import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_BAD_PARAM;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_INITIALIZED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_NOT_SUPPORTED;
import static io.hawser.cuda.generated.cudnn.cudnnStatus_t.CUDNN_STATUS_SUCCESS;

import io.hawser.cuda.backend.CudnnBackend;
import io.hawser.cuda.backend.CudnnBackend.Kind;
import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.HwsScalar;
import io.hawser.cuda.generated.cudnn.ContentManualCalls;
import io.hawser.cuda.generated.cudnn.CudnnDispatcher;
import io.hawser.cuda.generated.cudnn.CudnnDriver;
import io.hawser.cuda.generated.cudnn.HandleManualCalls;
import io.hawser.cuda.generated.cudnn.HandleReplies;
import io.hawser.cuda.generated.cudnn.HwsDnnHandle;
import io.hawser.cuda.generated.cudnn.HwsDnnTensor;
import io.hawser.cuda.generated.cudnn.HwsDnnWeights;
import io.hawser.cuda.generated.cudnn.RnnManualCalls;
import io.hawser.cuda.generated.cudnn.RnnReplies;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.Journal;
import io.hawser.worker.session.Session;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Map;

/** cuDNN: handles and the older functions. The first call opens the machine's library. Session thread. */
final class CudnnCalls implements LibraryCalls, HandleManualCalls<Call>, ContentManualCalls<Call>,
    RnnManualCalls<Call> {
    private static final int MAX_MESSAGE_BYTES = 4096; // the description's limit
    private static final Map<String, Kind> KINDS = Map.ofEntries(Map.entry("HwsDnnTensor", Kind.TENSOR),
        Map.entry("HwsDnnFilter", Kind.FILTER), Map.entry("HwsDnnConvolution", Kind.CONVOLUTION),
        Map.entry("HwsDnnActivation", Kind.ACTIVATION), Map.entry("HwsDnnPooling", Kind.POOLING),
        Map.entry("HwsDnnDropout", Kind.DROPOUT), Map.entry("HwsDnnRnn", Kind.RNN),
        Map.entry("HwsDnnRnnData", Kind.RNN_DATA), Map.entry("HwsDnnCtc", Kind.CTC),
        Map.entry("HwsDnnSpatial", Kind.SPATIAL), Map.entry("HwsDnnOpTensor", Kind.OP_TENSOR),
        Map.entry("HwsDnnReduce", Kind.REDUCE), Map.entry("HwsDnnLrn", Kind.LRN));

    private final GuestObjects objects;
    private final LibraryHandles handles;
    private final Journal journal;
    private final GpuBackend backend;
    private CudnnBackend cudnn; // null while the library has not been opened, or is missing
    private CudnnGraphs graphs;
    private CudnnDispatcher<Call> dispatcher;

    /** The stream that a handle of the library has. */
    private static final class Applied {
        private long stream; // a new handle has the default stream
    }

    CudnnCalls(Session session) {
        this.objects = session.objects();
        this.handles = new LibraryHandles(objects, HandleKind.CUDNN, new LibraryHandles.Results(
            CUDNN_STATUS_NOT_SUPPORTED, CUDNN_STATUS_NOT_INITIALIZED,
            CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED), Applied::new);
        this.backend = session.backend();
        this.journal = session.moving().journal();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            cudnn = MathProviders.open(backend, MathProvider::cudnn);
            graphs = new CudnnGraphs(this, cudnn, journal);
            dispatcher = new CudnnDispatcher<>(cudnn == null ? new CudnnDriver() {} : cudnn.driver(), this, graphs,
                this, this);
        }
        dispatcher.dispatch(call);
    }

    @Override
    public void cudnnCreate(Call call, long handleId) {
        handles.create(call, handleId, cudnn);
    }

    @Override
    public void cudnnDestroy(Call call, long handle, long handleId) {
        handles.destroy(call, handle, handleId, cudnn);
    }

    @Override
    public void hwsDnnVersion(Call call) {
        if (cudnn == null) {
            call.finish(CUDNN_STATUS_NOT_SUPPORTED);
            return;
        }
        long[] versions = cudnn.versions();
        HandleReplies.hwsDnnVersion(call.reply(), versions[0], versions[1], versions[2]);
        call.finish(CUDNN_STATUS_SUCCESS);
    }

    @Override
    public void hwsDnnLastError(Call call, int max_size) {
        if (max_size <= 0 || max_size > MAX_MESSAGE_BYTES) {
            call.fatal("a message has 1 to " + MAX_MESSAGE_BYTES + " bytes: max_size=" + max_size);
            return;
        }
        if (cudnn == null) {
            call.finish(CUDNN_STATUS_NOT_SUPPORTED);
            return;
        }
        MemorySegment message = call.scratch(max_size);
        message.fill((byte) 0);
        cudnn.lastError(message);
        long length = 0;
        while (length < max_size && message.get(ValueLayout.JAVA_BYTE, length) != 0) {
            length++;
        }
        HandleReplies.hwsDnnLastError(call.reply(), message.asSlice(0, length));
        call.finish(CUDNN_STATUS_SUCCESS);
    }

    /** The argument of the library for a handle or a descriptor. Ends the call if it is wrong. */
    @Override
    public MemorySegment object(Call call, String type, MemorySegment content) {
        if (cudnn == null) {
            call.fail(CUDNN_STATUS_NOT_SUPPORTED);
            return MemorySegment.NULL;
        }
        Kind kind = KINDS.get(type);
        if (kind == null) {
            return MemorySegment.ofAddress(handle(call, content, type.equals("HwsDnnHandle")));
        }
        long id = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsDnnTensor.ID_OFFSET);
        if (id == 0) {
            return MemorySegment.NULL;
        }
        CudnnObject object = graphs.find(id);
        if (object == null || object.older() != kind) {
            call.fatal("a descriptor must have been made: kind=" + kind + " id=" + id);
            return MemorySegment.NULL;
        }
        return object.segment();
    }

    /** The library's handle of a call, with its stream if the call issues work. The call has ended if it is wrong. */
    long handle(Call call, MemorySegment content, boolean issues) {
        if (cudnn == null) {
            call.fail(CUDNN_STATUS_NOT_SUPPORTED);
            return 0;
        }
        long made = call.handle(HandleKind.CUDNN, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsDnnHandle.ID_OFFSET));
        if (!issues || call.isRejected()) {
            return made;
        }
        Handle handle = call.lastObject();
        long stream = call.handle(HandleKind.STREAM, content.get(ValueLayout.JAVA_LONG_UNALIGNED,
            HwsDnnHandle.STREAM_OFFSET));
        if (call.isRejected()) {
            return 0;
        }
        Applied applied = handle.info(Applied.class);
        if (applied.stream != stream) {
            int status = cudnn.setStream(made, stream);
            if (status != CUDNN_STATUS_SUCCESS) {
                call.fail(status);
                return 0;
            }
            applied.stream = stream;
        }
        call.countKernel();
        return made;
    }

    /** A number on the host. The library reads as many bytes as its tensor's type needs, at most 8. */
    @Override
    public MemorySegment number(Call call, MemorySegment content, long bytes) {
        if (content.get(ValueLayout.JAVA_INT_UNALIGNED, HwsScalar.ON_DEVICE_OFFSET) != 0) {
            call.fatal("a number of cuDNN lies on the host");
            return MemorySegment.NULL;
        }
        return content.asSlice(HwsScalar.VALUE_OFFSET);
    }

    @Override
    public void hwsDnnSetDropout(Call call, MemorySegment handle, double dropout, long states, long stateSizeInBytes,
        long seed) {
        long made = handle(call, handle, true);
        if (!call.isRejected()) {
            call.finish(cudnn.fillDropout(made, (float) dropout, states, stateSizeInBytes, seed));
        }
    }

    @Override
    public void hwsDnnRnnWeights(Call call, MemorySegment handle, MemorySegment rnnDesc, int pseudoLayer,
        long weightSpaceSize, int linLayerID) {
        long made = handle(call, handle, false);
        if (call.isRejected()) {
            return;
        }
        MemorySegment rnn = object(call, "HwsDnnRnn", rnnDesc);
        if (call.isRejected()) {
            return;
        }
        if (rnn.address() == 0) {
            call.fail(CUDNN_STATUS_BAD_PARAM);
            return;
        }
        MemorySegment matrix = call.scratch(HwsDnnWeights.BYTES);
        MemorySegment bias = call.scratch(HwsDnnWeights.BYTES);
        int status = cudnn.weights(made, rnn.address(), pseudoLayer, weightSpaceSize, linLayerID, matrix, bias);
        if (status == CUDNN_STATUS_SUCCESS) {
            RnnReplies.hwsDnnRnnWeights(call.reply(), matrix, bias);
        }
        call.finish(status);
    }

    @Override
    public void hwsDnnCtcLoss(Call call, MemorySegment handle, MemorySegment loss, long labelCount,
        MemorySegment labels, long batch, MemorySegment labelLengths, MemorySegment inputLengths) {
        long made = handle(call, handle, true);
        if (call.isRejected()) {
            return;
        }
        MemorySegment checked = CudnnCtc.check(call, graphs, loss, labelCount, batch, labelLengths);
        if (!call.isRejected() && CudnnCtc.checkMemory(call, graphs, loss, batch)) {
            call.finish(cudnn.ctcLoss(made, checked, labels, labelLengths, inputLengths, null));
        }
    }

    @Override
    public void hwsDnnCtcSize(Call call, MemorySegment handle, MemorySegment loss, long labelCount,
        MemorySegment labels, long batch, MemorySegment labelLengths, MemorySegment inputLengths) {
        long made = handle(call, handle, false);
        if (call.isRejected()) {
            return;
        }
        MemorySegment checked = CudnnCtc.check(call, graphs, loss, labelCount, batch, labelLengths);
        if (call.isRejected()) {
            return;
        }
        MemorySegment bytes = call.scratch(Long.BYTES);
        int status = cudnn.ctcLoss(made, checked, labels, labelLengths, inputLengths, bytes);
        if (status == CUDNN_STATUS_SUCCESS) {
            RnnReplies.hwsDnnCtcSize(call.reply(), bytes.get(ValueLayout.JAVA_LONG, 0));
        }
        call.finish(status);
    }
}
