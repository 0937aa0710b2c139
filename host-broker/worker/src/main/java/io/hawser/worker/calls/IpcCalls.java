package io.hawser.worker.calls;

import io.hawser.cuda.backend.MemorySharing;
import io.hawser.cuda.generated.CUresult;
import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.IpcManualCalls;
import io.hawser.cuda.generated.IpcReplies;
import io.hawser.shm.events.EventPage;
import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import io.hawser.worker.session.GuestObjects;
import io.hawser.worker.session.Handle;
import io.hawser.worker.session.MemoryQuota;
import io.hawser.worker.session.Session;
import io.hawser.worker.session.SharedNames;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.security.SecureRandom;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;

/**
 * Memory and events that sessions of one vGPU share. The guest gets a random name; the broker maps the name to the
 * driver's handle, or to the names of the pieces of virtual memory in which the memory lies. Opened memory is not
 * charged to this session: the sharing session is charged for it, and after that the broker's slot in the vGPU's
 * ledger. Session thread.
 */
final class IpcCalls implements IpcManualCalls<Call> {
    private static final Logger LOG = System.getLogger(IpcCalls.class.getName());
    private static final int MAX_SHARED = 1024; // memory and events each, per session; the broker keeps no more
    private static final int MAX_OPENED = 1024; // memory of other sessions; the broker lets a session find no more
    private static final int DISABLE_TIMING = 2; // CU_EVENT_DISABLE_TIMING
    private static final long EVENT_BYTES = 0; // length of an event in the broker's table; no memory has it

    private static final class SharedObject {
        final long low;
        final long high;
        final byte[] handle;
        boolean isKept; // whether the broker keeps it
        private final List<Consumer<Boolean>> waiting = new ArrayList<>(); // for the first decision
        private boolean isDecided;

        SharedObject(long low, long high, byte[] handle) {
            this.low = low;
            this.high = high;
            this.handle = handle;
        }

        SharedHandles.Name name() {
            return new SharedHandles.Name(low, high);
        }

        /** Runs an action once it is decided whether others can find it. */
        void whenKept(Consumer<Boolean> action) {
            if (isDecided) {
                action.accept(isKept);
            } else {
                waiting.add(action);
            }
        }

        /** Decides whether others can find it. */
        void keep(boolean kept) {
            isKept = kept;
            isDecided = true;
            waiting.forEach(action -> action.accept(kept));
        }
    }

    private final Session session;
    private final GuestObjects objects;
    private final MemorySharing backend;
    private final ContextWaits waits;
    private final MemoryParts parts;
    private final SharedHandles handles;
    private final OpenedRanges openedRanges;
    private final SecureRandom random = new SecureRandom();
    private final Map<Long, SharedObject> shared = new HashMap<>(); // by the address of the allocation
    // By address. The guest may free a range and use its pieces otherwise, so nothing removes a range: the oldest goes.
    private final Map<Long, SharedObject> ranges = new LinkedHashMap<>();
    private int opened; // memory of other sessions, and openings on their way
    private final Map<Long, SharedObject> events = new HashMap<>(); // shared ones, by the guest's id

    IpcCalls(Session session, MemoryParts parts, SharedHandles handles) {
        this.parts = parts;
        this.handles = handles;
        this.openedRanges = new OpenedRanges(session, handles);
        this.session = session;
        this.objects = session.objects();
        this.backend = session.backend().memorySharing();
        this.waits = new ContextWaits(session);
    }

    private boolean isAbsent(Call call) {
        if (backend == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
        }
        return backend == null;
    }

    @Override
    public void hwsIpcShare(Call call, long address, long guestBytes) {
        List<MemoryParts.Part> found = parts.parts(address, guestBytes);
        if (!found.isEmpty()) {
            shareRange(call, address, guestBytes, found);
            return;
        }
        if (isAbsent(call)) {
            return;
        }
        long bytes = objects.allocations().lengthAt(address);
        MemoryQuota.Charge charge = objects.allocations().chargeAt(address);
        if (bytes < 0 || charge == null) {
            call.fail(CudaResult.INVALID_VALUE);
            return;
        }
        MemorySegment out = call.scratch(MemorySharing.HANDLE_BYTES);
        int result = backend.share(address, out);
        if (result != 0) {
            call.fail(result);
            return;
        }
        SharedObject entry = named(address, charge, out.toArray(ValueLayout.JAVA_BYTE));
        if (entry == null) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        call.deferWithoutRecord();
        keep(call, shared, address, entry, bytes, charge);
    }

    /** Shares the pieces of a range and then the range, whose name stands for theirs. */
    private void shareRange(Call call, long address, long bytes, List<MemoryParts.Part> found) {
        if (found.size() > OpenedRanges.MAX_PIECES) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        call.deferWithoutRecord();
        shareNext(call, found, new ArrayList<>(), names -> {
            byte[] place = new OpenedRanges.Place(names, found.getFirst().offset()).encode();
            SharedObject before = ranges.remove(address);
            if (before != null && Arrays.equals(before.handle, place)) {
                ranges.put(address, before);
            } else {
                if (before == null && ranges.size() >= MAX_SHARED) {
                    before = ranges.remove(ranges.keySet().iterator().next());
                }
                if (before != null) {
                    session.names().unshare(before.name().toString());
                }
                ranges.put(address, new SharedObject(random.nextLong(), random.nextLong(), place));
            }
            keep(call, ranges, address, ranges.get(address), bytes, null);
        });
    }

    private void shareNext(Call call, List<MemoryParts.Part> found, List<SharedHandles.Name> names,
        Consumer<List<SharedHandles.Name>> done) {
        if (names.size() == found.size()) {
            done.accept(names);
            return;
        }
        MemoryParts.Part part = found.get(names.size());
        handles.share(part.handle(), part.handleBytes(), part.charge(), (result, name) -> {
            if (result == 0) {
                names.add(name);
                shareNext(call, found, names, done);
            } else {
                call.finish(result);
            }
        });
    }

    /** Ends the deferred call with a name once the broker keeps it; drops a name that the broker does not keep. */
    private void keep(Call call, Map<Long, SharedObject> names, long key, SharedObject entry, long bytes,
        MemoryQuota.Charge charge) {
        if (entry.isKept) {
            answer(call, entry);
            return;
        }
        session.names().share(entry.name().toString(), new SharedNames.Memory(entry.handle, bytes,
            charge == null ? 0 : charge.column(), SharedNames.NO_DESCRIPTOR), charge, isKept -> {
                entry.isKept = isKept;
                if (isKept) {
                    answer(call, entry);
                } else {
                    names.remove(key, entry);
                    call.finish(CudaResult.OUT_OF_MEMORY);
                }
            });
    }

    private static void answer(Call call, SharedObject entry) {
        IpcReplies.hwsIpcShare(call.reply(), entry.low, entry.high);
        call.finish(0);
    }

    /** The name of an allocation: always the same for the same memory; null beyond the limit. */
    private SharedObject named(long address, MemoryQuota.Charge charge, byte[] handle) {
        SharedObject before = shared.get(address);
        if (before != null && Arrays.equals(before.handle, handle)) {
            return before;
        }
        if (before != null) { // belongs to a freed allocation at the same address
            forget(address);
        }
        if (shared.size() >= MAX_SHARED) {
            return null;
        }
        SharedObject made = new SharedObject(random.nextLong(), random.nextLong(), handle);
        shared.put(address, made);
        charge.passTo(counted -> {
            shared.remove(address, made);
            session.names().unshare(made.name().toString(), counted);
        });
        return made;
    }

    private void forget(long address) {
        session.names().unshare(shared.remove(address).name().toString());
    }

    @Override
    public void hwsIpcOpen(Call call, long memoryId, long nameLow, long nameHigh) {
        if (session.backend().virtualMemory() == null && isAbsent(call)) {
            return;
        }
        Handle owner = objects.owningContext();
        // CUDA does not open memory of the same process.
        if (owner == null || isOwn(shared, nameLow, nameHigh) || isOwn(ranges, nameLow, nameHigh)) {
            call.fail(CudaResult.INVALID_CONTEXT);
            return;
        }
        if (opened >= MAX_OPENED) {
            call.fail(CudaResult.OUT_OF_MEMORY);
            return;
        }
        opened++;
        call.deferWithoutRecord();
        String name = new SharedHandles.Name(nameLow, nameHigh).toString();
        session.names().find(name, found -> {
            if (found == null) {
                opened--;
                call.finish(CudaResult.INVALID_VALUE);
            } else if (found.bytes() == EVENT_BYTES) {
                release(name);
                call.finish(CudaResult.INVALID_VALUE);
            } else if (found.isPassed() || found.handle().length != MemorySharing.HANDLE_BYTES || backend == null) {
                session.names().release(name); // the pieces of a range are opened by themselves
                openRange(call, owner, memoryId, found);
            } else {
                session.gates().whenClosed(() -> open(call, owner, memoryId, name, found));
            }
        });
    }

    private void open(Call call, Handle owner, long memoryId, String name, SharedNames.Memory found) {
        if (!isOpened(call, owner, memoryId, found)) {
            release(name);
            return;
        }
        keepUntilClosed(owner, memoryId, () -> release(name));
    }

    private void openRange(Call call, Handle owner, long memoryId, SharedNames.Memory found) {
        OpenedRanges.Place place = found.isPassed() ? null : OpenedRanges.Place.decode(found.handle());
        int entered = objects.isLive(owner) ? place == null ? CudaResult.INVALID_VALUE : CudaResult.SUCCESS
            : CudaResult.INVALID_CONTEXT;
        if (entered != 0) {
            opened--;
            call.finish(entered);
            return;
        }
        openedRanges.open(place.pieces(), objects.deviceOf(owner), (result, range) -> {
            if (result != 0) {
                opened--;
                call.finish(result);
            } else if (!objects.isLive(owner) || place.offset() > range.bytes() - found.bytes()
                || !isRegistered(call, owner, memoryId, range.address() + place.offset(), found.bytes(), range)) {
                opened--;
                range.close();
                call.finish(objects.isLive(owner) ? CudaResult.INVALID_VALUE : CudaResult.INVALID_CONTEXT);
            } else {
                keepUntilClosed(owner, memoryId, () -> {
                    opened--;
                    range.close();
                });
                IpcReplies.hwsIpcOpen(call.reply(), range.address() + place.offset(), found.bytes());
                call.finish(CudaResult.SUCCESS);
            }
        });
    }

    /** Enters opened memory; false when the address is open already or the session has ended. */
    private boolean isRegistered(Call call, Handle owner, long memoryId, long address, long bytes,
        OpenedRanges.Mapped range) {
        objects.register(call, HandleKind.IPC_MEMORY, memoryId, address, owner, range);
        Handle handle = call.isRejected() ? null : objects.handles().find(HandleKind.IPC_MEMORY, memoryId);
        boolean isAdded = handle != null && objects.allocations().add(address, bytes, handle);
        if (handle != null && !isAdded) {
            // A correct guest counts its openings and sends only the first.
            objects.drop(HandleKind.IPC_MEMORY, memoryId);
        }
        return isAdded;
    }

    /** Runs a step when the memory is closed, with its context as well. The charge for that costs nothing. */
    private void keepUntilClosed(Handle owner, long memoryId, Runnable closed) {
        MemoryQuota.Charge imported = objects.quota().claim(objects.deviceOf(owner), 0);
        imported.passTo(counted -> {
            closed.run();
            counted.run();
        });
        objects.keepCharge(objects.handles().find(HandleKind.IPC_MEMORY, memoryId), imported);
    }

    private void release(String name) {
        opened--;
        session.names().release(name);
    }

    /** Opens the memory and answers the guest; false when the guest has the error instead. */
    private boolean isOpened(Call call, Handle owner, long memoryId, SharedNames.Memory found) {
        int entered = objects.isLive(owner) ? objects.enter(owner) : CudaResult.INVALID_CONTEXT;
        if (entered != 0) {
            call.finish(entered);
            return false;
        }
        MemorySegment handle = Arena.ofAuto().allocate(MemorySharing.HANDLE_BYTES, Long.BYTES);
        MemorySegment out = Arena.ofAuto().allocate(2 * Long.BYTES, Long.BYTES);
        int result = backend.open(handle.copyFrom(MemorySegment.ofArray(found.handle())), out);
        if (result != 0) {
            call.finish(result);
            return false;
        }
        long address = out.get(ValueLayout.JAVA_LONG, 0);
        // The other session may have reported a wrong length; the driver's is right.
        long bytes = Math.min(found.bytes(), out.get(ValueLayout.JAVA_LONG, Long.BYTES));
        if (bytes <= 0) {
            backend.close(address);
            call.finish(CudaResult.INVALID_VALUE);
            return false;
        }
        if (!isRegistered(call, owner, memoryId, address, bytes, null)) {
            backend.close(address);
            call.finish(CudaResult.INVALID_VALUE);
            return false;
        }
        IpcReplies.hwsIpcOpen(call.reply(), address, bytes);
        call.finish(0);
        return true;
    }

    @Override
    public void hwsIpcClose(Call call, long memory, long memoryId) {
        Handle owner = call.lastObject().owner();
        boolean isRange = call.lastObject().info(OpenedRanges.Mapped.class) != null;
        MemoryQuota.Charge imported = objects.takeCharge(call.lastObject());
        objects.drop(HandleKind.IPC_MEMORY, memoryId); // later copies cannot use it from now on
        waits.run(call, () -> {
            int entered = objects.isLive(owner) ? objects.enter(owner) : CudaResult.INVALID_CONTEXT;
            int result = entered != 0 || isRange ? entered : backend.close(memory);
            imported.giveBack(); // the driver has given it up, or its context is gone
            call.finish(result);
        });
    }

    private static boolean isOwn(Map<Long, SharedObject> shared, long low, long high) {
        return shared.values().stream().anyMatch(own -> own.low == low && own.high == high);
    }

    @Override
    public void hwsIpcShareEvent(Call call, long event) {
        Handle handle = call.lastObject();
        InterprocessEvent interprocess = handle.info(InterprocessEvent.class);
        if (interprocess == null) {
            call.fail(CudaResult.INVALID_HANDLE);
            return;
        }
        SharedObject before = events.get(handle.id());
        if (before != null) {
            call.deferWithoutRecord();
            before.whenKept(isKept -> answerEvent(call, before, isKept));
            return;
        }
        SharedObject entry = new SharedObject(random.nextLong(), random.nextLong(), new byte[] {0});
        events.put(handle.id(), entry);
        call.deferWithoutRecord();
        entry.whenKept(isKept -> answerEvent(call, entry, isKept));
        String name = entry.name().toString();
        session.names().share(name, new SharedNames.Memory(entry.handle, EVENT_BYTES, 0, SharedNames.NO_DESCRIPTOR),
            null, isKept -> {
                if (isKept) {
                    session.names().find(name, found -> shareEvent(handle, interprocess, entry, found));
                } else {
                    events.remove(handle.id());
                    entry.keep(false);
                }
            });
    }

    /** Uses the page that the broker has made for a shared event. */
    private void shareEvent(Handle handle, InterprocessEvent event, SharedObject entry, SharedNames.Memory found) {
        String name = entry.name().toString();
        EventPage page = found == null ? null : mapped(found);
        int result = page == null || !objects.isLive(handle.owner()) || !isLive(handle) ? CudaResult.INVALID_HANDLE
            : objects.enter(handle.owner());
        if (result == 0) {
            result = event.share(page, () -> {
                events.remove(handle.id());
                session.names().release(name);
                session.names().unshare(name);
            });
        } else if (page != null) {
            page.close();
        }
        if (result == 0) {
            endWithHandle(handle, event);
            result = event.shareRecord(handle.owner().nativeHandle());
        } else {
            events.remove(handle.id());
            if (found != null) {
                session.names().release(name);
            }
            session.names().unshare(name);
        }
        entry.keep(result == 0);
    }

    private boolean isLive(Handle handle) {
        return objects.handles().find(handle.kind(), handle.id()) == handle;
    }

    private static EventPage mapped(SharedNames.Memory found) {
        try {
            return found.isPassed() ? EventPage.map(found.descriptor()) : null;
        } catch (IOException e) {
            LOG.log(Level.WARNING, "the page of an event cannot be used: {0}", e.getMessage());
            return null;
        }
    }

    /** Ends a shared event with its handle or its context. The charge for that costs nothing. */
    private void endWithHandle(Handle handle, InterprocessEvent event) {
        MemoryQuota.Charge charge = objects.quota().claim(objects.deviceOf(handle.owner()), 0);
        charge.passTo(counted -> {
            event.destroy();
            counted.run();
        });
        objects.keepCharge(handle, charge);
    }

    private static void answerEvent(Call call, SharedObject entry, boolean isKept) {
        if (isKept) {
            answer(call, entry);
        } else {
            call.finish(CudaResult.OUT_OF_MEMORY);
        }
    }

    @Override
    public void hwsIpcOpenEvent(Call call, long eventId, long nameLow, long nameHigh) {
        Handle owner = objects.owningContext();
        if (owner == null || isOwn(events, nameLow, nameHigh)) { // CUDA does not open an event of the same process
            call.fail(CudaResult.INVALID_CONTEXT);
            return;
        }
        if (session.backend().signals() == null) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        call.deferWithoutRecord();
        String name = new SharedHandles.Name(nameLow, nameHigh).toString();
        session.names().find(name, found -> {
            EventPage page = found == null || found.bytes() != EVENT_BYTES ? null : mapped(found);
            int result = page == null ? CUresult.CUDA_ERROR_MAP_FAILED
                : openEvent(call, owner, eventId, page, () -> session.names().release(name));
            if (found != null && result != 0) {
                session.names().release(name);
            }
            call.finish(result);
        });
    }

    private int openEvent(Call call, Handle owner, long eventId, EventPage page, Runnable closed) {
        MemorySegment out = Arena.ofAuto().allocate(Long.BYTES, Long.BYTES);
        int result = objects.isLive(owner) ? objects.enter(owner) : CudaResult.INVALID_CONTEXT;
        if (result == 0) {
            result = session.backend().driver().cuEventCreate(out, DISABLE_TIMING);
        }
        if (result != 0) {
            page.close();
            return result;
        }
        long local = out.get(ValueLayout.JAVA_LONG, 0);
        InterprocessEvent event = new InterprocessEvent(session, local);
        result = event.share(page, closed);
        if (result == 0) {
            objects.register(call, HandleKind.EVENT, eventId, local, owner, event);
        }
        if (result != 0 || call.isRejected()) {
            session.backend().driver().cuEventDestroy_v2(local);
            return result != 0 ? result : CudaResult.INVALID_VALUE;
        }
        endWithHandle(objects.handles().find(HandleKind.EVENT, eventId), event);
        return 0;
    }
}
