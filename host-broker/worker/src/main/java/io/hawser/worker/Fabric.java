package io.hawser.worker;

import io.hawser.shm.rdma.GpuDirect;
import io.hawser.shm.rdma.RdmaEnd;
import io.hawser.shm.rdma.RdmaOptions;
import io.hawser.shm.wire.RecordLayout;
import io.hawser.worker.channel.Answer;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.rdma.Mirror;
import io.hawser.worker.channel.rdma.RdmaLink;
import io.hawser.worker.channel.tcp.TcpLink;
import io.hawser.worker.control.BrokerMessage;
import io.hawser.worker.control.WorkerMessage;
import io.hawser.worker.jail.Jail;
import io.hawser.worker.session.LogText;
import java.io.IOException;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.util.HexFormat;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;

/**
 * The worker's end of RDMA. It is opened before the jail, and serves at most one session. A session that may not use it
 * begins after it is closed.
 */
final class Fabric {
    private static final Logger LOG = System.getLogger(Fabric.class.getName());

    /** The mirror, and as much again for the queues of the device and their work requests. */
    private static final long LOCKED_BYTES = 2L * RecordLayout.MIRROR_BYTES;

    private RdmaEnd end; // null while there is none
    private String absence = "the worker has no RDMA device: the broker has RDMA switched off (hawser.rdma.enabled)";
    private String limit; // why the limit of locked memory stays; null when it suffices
    private GpuDirect gpuDirect = GpuDirect.OFF;
    private final Set<Integer> gpus = new TreeSet<>();
    private Mirror mirror;
    private Answer answer;

    /** Opens the device. A machine without one has no RDMA, and all else works. */
    void open(RdmaOptions options, GpuDirect ofGpus) {
        gpuDirect = ofGpus;
        limit = Jail.allowLockedMemory(LOCKED_BYTES);
        try {
            end = RdmaEnd.open(options, true);
            LOG.log(Level.INFO, "RDMA device: {0}", end.device());
        } catch (IOException e) {
            absence = "the worker has no RDMA device: " + e.getMessage();
            LOG.log(Level.INFO, "sessions go by TCP: {0}", absence); // the broker warns once for all workers
        }
    }

    /** Finds the GPUs whose memory the device may use. Call it before the jail, which hides the places of devices. */
    void findGpus(List<WorkerMessage.Device> devices) {
        for (int i = 0; end != null && i < devices.size(); i++) {
            if (gpuDirect == GpuDirect.ON || gpuDirect == GpuDirect.AUTO
                && PcieTree.ofKernel().haveCommonSwitch(end.device(), devices.get(i).pciBusId())) {
                gpus.add(i);
            }
        }
    }

    /** Numbers of the GPUs that {@link #findGpus} has found. */
    Set<Integer> gpus() {
        return gpus;
    }

    /** The descriptor of the device's commands; -1 without a device. */
    int descriptor() {
        return end == null ? -1 : end.deviceDescriptor();
    }

    /**
     * Makes the link of a session over a connection: by RDMA, if its guest has offered that and may use it.
     *
     * @param descriptor the guest's socket.
     * @throws IOException if the socket cannot be used.
     */
    Link link(BrokerMessage.Assign assign, int descriptor) throws IOException {
        if (assign.rdma() != null) {
            answer = answer(assign);
            if (answer.end().length != 0) {
                mirror = new Mirror(end);
                return RdmaLink.start(end, descriptor);
            }
            LOG.log(Level.INFO, "session {0} goes by TCP: {1}", Long.toString(assign.sessionId()),
                LogText.clean(answer.reason()));
        }
        close();
        return new TcpLink(descriptor);
    }

    private Answer answer(BrokerMessage.Assign assign) {
        if (assign.rdmaRefusal() != null) {
            return refusal(assign.rdmaRefusal());
        }
        if (end == null) {
            return refusal(absence);
        }
        byte[] own;
        try {
            own = end.prepare();
        } catch (IOException e) {
            return refusal(limit == null ? e.getMessage() : e.getMessage() + " (" + limit + ")");
        }
        try {
            end.connect(HexFormat.of().parseHex(assign.rdma()));
            return new Answer(own, "");
        } catch (IOException | IllegalArgumentException e) {
            return refusal(e.getMessage());
        }
    }

    private static Answer refusal(String reason) {
        return new Answer(new byte[0], reason);
    }

    /** The answer to the guest; null for a guest that has offered nothing. */
    Answer answer() {
        return answer;
    }

    /** The memory of a session over RDMA; null for another carrier. */
    Mirror mirror() {
        return mirror;
    }

    /** Closes the device; no thread may use the mirror any more. */
    void close() {
        if (end != null) {
            end.close();
            end = null;
            mirror = null;
        }
    }
}
