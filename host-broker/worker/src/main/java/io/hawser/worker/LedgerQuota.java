package io.hawser.worker;

import io.hawser.shm.ledger.Ledger;
import io.hawser.shm.ledger.LedgerAccount;
import io.hawser.shm.ledger.LedgerLayout;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SharedMemory;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.session.MemoryQuota;
import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.util.List;

/** Opens the quota that a worker's session shares with the other sessions of its vGPU. */
final class LedgerQuota {
    private LedgerQuota() {}

    /**
     * Maps the ledger.
     *
     * @param descriptor of its memory, closed on return.
     * @param devices UUIDs of the worker's GPUs, by device number.
     * @throws IOException when the ledger cannot be mapped, or lacks a column for a GPU.
     */
    static MemoryQuota open(BrokerMessage.Ledger message, int descriptor, List<String> devices) throws IOException {
        try {
            MemorySegment memory = SharedMemory.mapWhileReachable(descriptor, LedgerLayout.bytes(message.slots()));
            int[] columns = columns(message.gpus(), devices);
            long[] contextBytes = new long[columns.length];
            for (int device = 0; device < columns.length; device++) {
                contextBytes[device] = columns[device] < message.contextBytes().size()
                    ? message.contextBytes().get(columns[device]) : 0;
            }
            return new MemoryQuota(new LedgerAccount(new Ledger(memory, message.slots()), message.slot()), columns,
                contextBytes);
        } finally {
            Descriptors.close(descriptor); // the mapping stays valid
        }
    }

    /** The ledger's column for each device number. */
    private static int[] columns(List<String> gpus, List<String> devices) throws IOException {
        int[] columns = new int[devices.size()];
        for (int device = 0; device < columns.length; device++) {
            columns[device] = gpus.indexOf(devices.get(device));
            if (columns[device] < 0 || columns[device] >= LedgerLayout.MAX_COLUMNS) {
                throw new IOException("a ledger must have a column for each GPU: gpu=" + devices.get(device)
                    + " columns=" + gpus);
            }
        }
        return columns;
    }
}
