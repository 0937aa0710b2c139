package io.hawser.worker.calls;

import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidArgument;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclInvalidUsage;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSuccess;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclSystemError;
import static io.hawser.cuda.generated.nccl.ncclResult_t.ncclUnhandledCudaError;

import io.hawser.cuda.backend.GpuBackend;
import io.hawser.cuda.backend.MathProvider;
import io.hawser.cuda.backend.NcclBackend;
import io.hawser.cuda.backend.NcclMember;
import io.hawser.cuda.backend.NcclOperation;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.nccl.CommunicatorManualCalls;
import io.hawser.cuda.generated.nccl.CommunicatorReplies;
import io.hawser.cuda.generated.nccl.FactsManualCalls;
import io.hawser.cuda.generated.nccl.FactsReplies;
import io.hawser.cuda.generated.nccl.HwsNcclMember;
import io.hawser.cuda.generated.nccl.HwsNcclOperation;
import io.hawser.cuda.generated.nccl.HwsNcclPlace;
import io.hawser.cuda.generated.nccl.NcclDispatcher;
import io.hawser.cuda.generated.nccl.NcclDriver;
import io.hawser.cuda.generated.nccl.OperationManualCalls;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.Gates;
import io.hawser.worker.session.GraphState;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.StreamState;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.RejectedExecutionException;

/**
 * NCCL. Calls that wait for other ranks run on threads of their own, so the session's thread never waits for a rank:
 * ranks may be threads of the same guest process. Session thread.
 */
final class NcclCalls implements LibraryCalls, FactsManualCalls<Call>, CommunicatorManualCalls<Call>,
    OperationManualCalls<Call> {
    /** Communicators that a session has not ended: each takes sockets and threads of the worker. */
    static final int MAX_COMMUNICATORS = 256;
    /** Ids that nobody may ever use: each takes memory of the worker. */
    static final int MAX_IDS = 4096;

    private final Session session;
    private final GuestObjects objects;
    private final GpuBackend backend;
    private final NcclThreads threads = new NcclThreads();
    private final NcclPeers peers = new NcclPeers();
    private NcclBackend nccl; // null while the library has not been opened, or is missing
    private NcclDispatcher<Call> dispatcher;
    private int communicators; // also those whose making has begun, and those whose context has ended
    private int ids;

    /** The session's facts about a communicator. */
    private record Communicator(int ranks, int rank, NcclPeers.Group peers) {
    }

    /** A communicator that is being made. */
    private record Beginning(long id, Handle context, NcclMember member, NcclPeers.Group peers,
        MemoryQuota.Charge charge) {
    }

    NcclCalls(Session session) {
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend();
    }

    @Override
    public void dispatch(int opcode, Call call) {
        if (dispatcher == null) {
            nccl = MathProviders.open(backend, MathProvider::nccl);
            dispatcher = new NcclDispatcher<>(new NcclDriver() {}, this, this, this);
        }
        if (nccl == null) {
            call.fail(ncclInvalidUsage);
        } else {
            dispatcher.dispatch(call);
        }
    }

    @Override
    public void end() {
        if (nccl != null) {
            objects.closeGraphs(); // a communicator ends after the graphs that use it
            nccl.close();
        }
        threads.close();
    }

    @Override
    public void ncclGetVersion(Call call) {
        MemorySegment version = call.scratch(Integer.BYTES);
        int status = nccl.version(version);
        if (status == ncclSuccess) {
            FactsReplies.ncclGetVersion(call.reply(), version.get(ValueLayout.JAVA_INT, 0));
        }
        call.finish(status);
    }

    @Override
    public void ncclGetUniqueId(Call call) {
        MemorySegment id = call.scratch(NcclMember.ID_BYTES);
        int status = ++ids > MAX_IDS ? ncclSystemError : nccl.uniqueId(id);
        if (status == ncclSuccess) {
            FactsReplies.ncclGetUniqueId(call.reply(), id);
        }
        call.finish(status);
    }

    @Override
    public void hwsNcclMake(Call call, MemorySegment members, int count) {
        List<Beginning> beginnings = new ArrayList<>();
        int status = count < 1 ? ncclInvalidArgument : ncclSuccess;
        for (int i = 0; i < count && status == ncclSuccess && !call.isRejected(); i++) {
            status = begin(call, element(members, i, HwsNcclMember.BYTES), beginnings);
        }
        if (status != ncclSuccess || call.isRejected()) {
            beginnings.forEach(this::giveUp);
            call.finish(status);
            return;
        }
        call.deferWithoutRecord();
        NcclBackend.Made[] made = new NcclBackend.Made[count];
        List<NcclMember> all = beginnings.stream().map(Beginning::member).toList();
        try {
            threads.execute(() -> {
                int result = nccl.make(all, made);
                session.completions().add(() -> finishMake(call, beginnings, made, result));
            });
        } catch (RejectedExecutionException e) { // as many calls wait as a session may have
            finishMake(call, beginnings, made, ncclSystemError);
        }
    }

    private static MemorySegment element(MemorySegment array, int index, long bytes) {
        return array.asSlice(index * bytes, bytes);
    }

    /** Checks a member, and claims what it needs; returns the result. */
    private int begin(Call call, MemorySegment content, List<Beginning> beginnings) {
        long id = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsNcclMember.COMM_OFFSET);
        long contextId = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsNcclMember.CONTEXT_OFFSET);
        long parentId = content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsNcclMember.PARENT_OFFSET);
        Handle context = objects.handles().find(HandleKind.CONTEXT, contextId);
        if (context == null || context.isFailed()) {
            return ncclInvalidArgument; // the guest has destroyed it
        }
        Handle home = context.isGreen() ? context.owner() : context;
        long parent = parentId == 0 ? 0 : call.handle(HandleKind.NCCL, parentId);
        if (call.isRejected()) {
            return ncclSuccess;
        }
        NcclPeers.Group family = parentId == 0 ? null : call.lastObject().info(Communicator.class).peers();
        NcclMember member = NcclMember.of(content, home.nativeHandle(), parent);
        if (!member.isValid()) {
            call.fatal("a member must have a rank among its ranks, or a color: ranks=" + member.ranks() + " rank="
                + member.rank() + " color=" + member.color());
            return ncclSuccess;
        }
        if (member.isAbsent()) {
            beginnings.add(new Beginning(0, home, member, null, null));
            return ncclSuccess;
        }
        if (communicators >= MAX_COMMUNICATORS) {
            return ncclSystemError;
        }
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(home), nccl.communicatorBytes());
        if (charge == null) {
            return ncclUnhandledCudaError; // as after a failed allocation of NVIDIA's library
        }
        communicators++;
        NcclPeers.Group group = family != null ? family : peers.of(member.id(), beginnings.isEmpty() ? null
            : beginnings.getFirst().peers());
        group.add();
        beginnings.add(new Beginning(id, home, member, group, charge));
        return ncclSuccess;
    }

    private void giveUp(Beginning beginning) {
        if (beginning.charge() != null) {
            communicators--;
            beginning.charge().giveBack();
            peers.remove(beginning.peers());
        }
    }

    private void finishMake(Call call, List<Beginning> beginnings, NcclBackend.Made[] made, int result) {
        MemorySegment places = call.scratch((long) beginnings.size() * HwsNcclPlace.BYTES);
        for (int i = 0; i < beginnings.size(); i++) {
            Beginning beginning = beginnings.get(i);
            if (result != ncclSuccess) {
                giveUp(beginning);
            } else {
                MemorySegment place = element(places, i, HwsNcclPlace.BYTES);
                place.set(ValueLayout.JAVA_INT, HwsNcclPlace.RANKS_OFFSET, made[i].ranks());
                place.set(ValueLayout.JAVA_INT, HwsNcclPlace.RANK_OFFSET, made[i].rank());
                register(call, beginning, made[i]);
            }
        }
        if (result == ncclSuccess && !call.isRejected()) {
            CommunicatorReplies.hwsNcclMake(call.reply(), places);
        }
        call.finish(result);
    }

    private void register(Call call, Beginning beginning, NcclBackend.Made made) {
        if (beginning.charge() == null) {
            return;
        }
        if (!call.isRejected()) {
            objects.register(call, HandleKind.NCCL, beginning.id(), made.comm(), beginning.context(),
                new Communicator(made.ranks(), made.rank(), beginning.peers()));
        }
        if (call.isRejected()) { // the session has ended, and aborts all communicators
            giveUp(beginning);
        } else {
            objects.keepCharge(objects.handles().find(HandleKind.NCCL, beginning.id()), beginning.charge());
        }
    }

    @Override
    public void hwsNcclFinalize(Call call, long comm) {
        call.deferWithoutRecord();
        threads.run(call, () -> nccl.finish(comm));
    }

    @Override
    public void hwsNcclEnd(Call call, long comm, int isAbort) {
        Handle handle = call.lastObject();
        communicators--;
        peers.remove(handle.info(Communicator.class).peers());
        call.drop(HandleKind.NCCL, handle.id());
        call.deferWithoutRecord();
        threads.run(call, () -> nccl.end(comm, isAbort != 0));
    }

    @Override
    public void hwsNcclAsyncError(Call call, long comm) {
        CommunicatorReplies.hwsNcclAsyncError(call.reply(), nccl.asyncError(comm));
        call.finish(ncclSuccess);
    }

    @Override
    public void hwsNcclRun(Call call, MemorySegment operation) {
        run(call, operation, 1);
    }

    @Override
    public void hwsNcclRunGroup(Call call, MemorySegment operations, int count) {
        run(call, operations, count);
    }

    private void run(Call call, MemorySegment content, int count) {
        List<NcclOperation> operations = new ArrayList<>(count);
        Set<Handle> communicatorsOfGroup = new HashSet<>();
        Set<StreamState> streams = new HashSet<>();
        for (int i = 0; i < count; i++) {
            NcclOperation operation = resolve(call, element(content, i, HwsNcclOperation.BYTES));
            if (operation == null) {
                return;
            }
            operations.add(operation);
            communicatorsOfGroup.add(call.lastObject());
            streams.add(call.lastStream());
        }
        call.countKernel();
        GraphState.Waits waits = waits(communicatorsOfGroup);
        if (call.isCaptured()) { // the launches of the graph open gates
            call.captureWaits(waits);
            call.finish(nccl.run(operations));
            return;
        }
        List<Gates.Gate> gates = new ArrayList<>();
        if (waits == GraphState.Waits.FOR_THREADS) {
            streams.forEach(stream -> gates.add(session.gates().open()));
        }
        int result = nccl.run(operations);
        List<StreamState> waiting = List.copyOf(streams);
        for (int i = 0; i < gates.size(); i++) {
            Gates.Gate gate = gates.get(i);
            session.work().whenReached(waiting.get(i), status -> session.gates().close(gate));
        }
        call.finish(result);
    }

    /**
     * Finds out what the streams may wait for. If other ranks of a communicator are in the same guest process and have
     * no part in the group, it is a later call of the guest. Calls that wait for the device are then postponed.
     */
    private static GraphState.Waits waits(Set<Handle> members) {
        GraphState.Waits waits = GraphState.Waits.FOR_NOTHING;
        for (Handle member : members) {
            Communicator communicator = member.info(Communicator.class);
            NcclPeers.Group group = communicator.peers();
            long here = members.stream().filter(other -> other.info(Communicator.class).peers() == group).count();
            if (communicator.ranks() > 1) {
                waits = waits.and(here < group.members() ? GraphState.Waits.FOR_THREADS
                    : GraphState.Waits.FOR_PROCESSES);
            }
        }
        return waits;
    }

    /** Resolves and checks an operation; null when this has ended the call. */
    private NcclOperation resolve(Call call, MemorySegment content) {
        long comm = call.handle(HandleKind.NCCL,
            content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsNcclOperation.COMM_OFFSET));
        if (call.isRejected()) {
            return null;
        }
        Handle handle = call.lastObject();
        Communicator communicator = handle.info(Communicator.class);
        if (objects.enter(handle.owner()) != 0) { // a default stream is that of the communicator's device
            call.fail(ncclUnhandledCudaError);
            return null;
        }
        long stream = call.handle(HandleKind.STREAM,
            content.get(ValueLayout.JAVA_LONG_UNALIGNED, HwsNcclOperation.STREAM_OFFSET));
        if (call.isRejected()) {
            return null;
        }
        NcclOperation operation = NcclOperation.of(content, comm, stream);
        if (!operation.isValid(communicator.ranks())) {
            call.fatal("an operation must be one of nccl.h, with a rank of its communicator: " + operation);
            return null;
        }
        boolean isChecked = call.checkDevice(operation.send(),
            operation.sendBytes(communicator.ranks(), communicator.rank()))
            && call.checkDevice(operation.receive(),
                operation.receiveBytes(communicator.ranks(), communicator.rank()))
            && call.checkDevice(operation.factor(), operation.factorBytes());
        return isChecked ? operation : null;
    }
}
