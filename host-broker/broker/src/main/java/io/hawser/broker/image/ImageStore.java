package io.hawser.broker.image;

import io.hawser.broker.pool.ImagePeer;
import io.hawser.broker.pool.WorkerMessage;
import io.hawser.broker.posix.PosixException;
import io.hawser.shm.control.BrokerMessageType;
import io.hawser.shm.os.Descriptors;
import io.hawser.shm.os.SealedMemory;
import java.io.IOException;
import java.util.ArrayDeque;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Queue;
import org.jboss.logging.Logger;

/**
 * Keeps device code by vGPU and SHA-256, so that later sessions of the vGPU need not send it again. An image is sealed
 * memory that a worker has written; only later workers of the same vGPU receive it. The broker never reads the content.
 * The receiving worker checks the digest, because the writing worker may be under its guest's control. Event loop only.
 */
public final class ImageStore implements AutoCloseable {
    private static final Logger LOG = Logger.getLogger(ImageStore.class);

    /**
     * Bounds of the store; the least recently used image is dropped first.
     *
     * @param maxImages number of images; each needs a descriptor of the broker.
     * @param maxBytes memory of all images; 0 keeps none.
     */
    public record Limits(int maxImages, long maxBytes) {}

    /** A number of images and the sum of their bytes. */
    private record Use(int images, long bytes) {
        static final Use NONE = new Use(0, 0);

        Use and(Image image) {
            return new Use(images + 1, bytes + image.bytes);
        }

        Use and(Use other) {
            return new Use(images + other.images, bytes + other.bytes);
        }

        boolean leavesRoom(Limits limits, long more) {
            return bytes + more <= limits.maxBytes && images < limits.maxImages;
        }
    }

    /** Waiting offers of one worker; a correct guest loads a few large libraries in a row. */
    private static final int MAX_WAITING = 64;

    private record Image(int descriptor, long bytes) {}

    /** An image that a worker writes, and the worker's further offers. */
    private record Writing(String vgpu, String sha256, Image image, Queue<WorkerMessage.Image> waiting) {}

    private final Limits limits;
    private final Limits total;
    private final Map<String, LinkedHashMap<String, Image>> byVgpu = new HashMap<>(); // least recently used first
    private final Map<ImagePeer, Writing> writing = new HashMap<>(); // at most one a worker

    /**
     * Starts empty.
     *
     * @param limits of one vGPU.
     * @param total of all vGPUs together.
     */
    public ImageStore(Limits limits, Limits total) {
        this.limits = limits;
        this.total = total;
    }

    /** The digests of the images that a new session of this vGPU need not send. */
    public List<String> digests(String vgpu) {
        return List.copyOf(images(vgpu).keySet());
    }

    private LinkedHashMap<String, Image> images(String vgpu) {
        return byVgpu.computeIfAbsent(vgpu, name -> new LinkedHashMap<>(16, 0.75f, true));
    }

    /** Handles a worker's message about images; the worker serves a session of this vGPU. */
    public void handle(ImagePeer worker, String vgpu, WorkerMessage.OfImage message) {
        switch (message) {
            case WorkerMessage.Image offer -> handleOffer(worker, vgpu, offer);
            case WorkerMessage.Stored stored -> handleStored(worker, stored.sha256());
            case WorkerMessage.Want want -> handleWant(worker, vgpu, want.sha256());
            case WorkerMessage.Unfit unfit -> {
                LOG.warnf("an image does not match its digest and is dropped: vgpu=%s sha256=%s", vgpu,
                    unfit.sha256());
                drop(images(vgpu).remove(unfit.sha256()));
            }
        }
    }

    private void handleOffer(ImagePeer worker, String vgpu, WorkerMessage.Image offer) {
        Writing before = writing.get(worker);
        if (before == null) {
            take(worker, vgpu, offer, new ArrayDeque<>());
        } else if (before.waiting.size() < MAX_WAITING) {
            before.waiting.add(offer);
        }
    }

    /**
     * Gives a worker memory to write an image to. Returns false when the store does not take the image; the worker does
     * not wait and receives no answer.
     */
    private boolean take(ImagePeer worker, String vgpu, WorkerMessage.Image offer, Queue<WorkerMessage.Image> waiting) {
        LinkedHashMap<String, Image> images = images(vgpu);
        if (images.containsKey(offer.sha256()) || !makeRoom(vgpu, images, offer.bytes())) {
            return false;
        }
        int descriptor;
        try {
            descriptor = SealedMemory.create("hawser-image", offer.bytes());
        } catch (IOException e) {
            LOG.warnf("an image cannot be kept: %s", e.getMessage());
            return false;
        }
        Image image = new Image(descriptor, offer.bytes());
        writing.put(worker, new Writing(vgpu, offer.sha256(), image, waiting));
        try {
            worker.giveImage(BrokerMessageType.STORE, offer.sha256(), offer.bytes(), descriptor);
        } catch (PosixException e) {
            LOG.debugf("worker %d did not receive memory for an image: %s", worker.id(), e.getMessage());
            workerEnded(worker);
        }
        return true;
    }

    /**
     * Drops images until an image of this size fits. Images that workers are writing count and stay. For the vGPU's own
     * limit, the vGPU's images are dropped. For the total limit, the vGPU that uses most loses images: no vGPU can
     * displace the images of a vGPU that uses less.
     */
    private boolean makeRoom(String vgpu, LinkedHashMap<String, Image> images, long bytes) {
        if (bytes > limits.maxBytes || bytes > total.maxBytes) {
            return false;
        }
        while (!use(vgpu).leavesRoom(limits, bytes) && !images.isEmpty()) {
            dropOldest(images);
        }
        if (!use(vgpu).leavesRoom(limits, bytes)) {
            return false;
        }
        for (Use all = useOfAll(); !all.leavesRoom(total, bytes); all = useOfAll()) {
            boolean byBytes = all.bytes + bytes > total.maxBytes;
            LinkedHashMap<String, Image> most = largest(vgpu, byBytes ? bytes : 1, byBytes);
            if (most.isEmpty()) {
                return false;
            }
            dropOldest(most);
        }
        return true;
    }

    private Use use(String vgpu) {
        Use kept = images(vgpu).values().stream().reduce(Use.NONE, Use::and, Use::and);
        return writing.values().stream().filter(other -> other.vgpu.equals(vgpu)).map(Writing::image)
            .reduce(kept, Use::and, Use::and);
    }

    private Use useOfAll() {
        return writing.values().stream().map(Writing::image).reduce(new Use(size(), bytes()), Use::and, Use::and);
    }

    /** The images of the vGPU that uses most, in bytes or in number; {@code wanted} counts for the asking vGPU. */
    private LinkedHashMap<String, Image> largest(String asking, long wanted, boolean byBytes) {
        LinkedHashMap<String, Image> largest = images(asking);
        long most = amount(asking, byBytes) + wanted;
        for (Map.Entry<String, LinkedHashMap<String, Image>> other : byVgpu.entrySet()) {
            long amount = amount(other.getKey(), byBytes);
            if (amount > most && !other.getValue().isEmpty()) {
                largest = other.getValue();
                most = amount;
            }
        }
        return largest;
    }

    private long amount(String vgpu, boolean byBytes) {
        Use use = use(vgpu);
        return byBytes ? use.bytes : use.images;
    }

    private static void dropOldest(LinkedHashMap<String, Image> images) {
        Iterator<Image> oldest = images.values().iterator();
        Image image = oldest.next();
        oldest.remove();
        drop(image);
    }

    private void handleStored(ImagePeer worker, String sha256) {
        Writing written = writing.remove(worker);
        if (written == null) {
            return;
        }
        keep(worker, written, sha256);
        WorkerMessage.Image next;
        do {
            next = written.waiting.poll();
        } while (next != null && !take(worker, written.vgpu, next, written.waiting));
    }

    private void keep(ImagePeer worker, Writing written, String sha256) {
        try {
            SealedMemory.seal(written.image.descriptor);
        } catch (IOException e) {
            LOG.warnf("an image is dropped, since worker %d can still write to it: %s", worker.id(), e.getMessage());
            drop(written.image);
            return;
        }
        if (!written.sha256.equals(sha256) || images(written.vgpu).containsKey(sha256)) {
            drop(written.image);
            return;
        }
        images(written.vgpu).put(sha256, written.image);
        LOG.debugf("the store keeps an image: vgpu=%s bytes=%d sha256=%s", written.vgpu, written.image.bytes, sha256);
    }

    private void handleWant(ImagePeer worker, String vgpu, String sha256) {
        Image image = images(vgpu).get(sha256);
        try {
            if (image == null) {
                worker.sendImageDropped(sha256);
            } else {
                worker.giveImage(BrokerMessageType.IMAGE, sha256, image.bytes, image.descriptor);
            }
        } catch (PosixException e) {
            LOG.debugf("worker %d did not receive an image: %s", worker.id(), e.getMessage());
        }
    }

    /** Drops the image that an ended worker was writing. */
    public void workerEnded(ImagePeer worker) {
        Writing unfinished = writing.remove(worker);
        if (unfinished != null) {
            drop(unfinished.image);
        }
    }

    /** Drops the images of a deleted vGPU: a new vGPU of the same name may belong to another tenant. */
    public void forget(String vgpu) {
        Map<String, Image> images = byVgpu.remove(vgpu);
        if (images != null) {
            images.values().forEach(ImageStore::drop);
        }
    }

    /** Number of images of all vGPUs. */
    public int size() {
        return byVgpu.values().stream().mapToInt(Map::size).sum();
    }

    /** Bytes of all images. */
    public long bytes() {
        return byVgpu.values().stream().flatMap(images -> images.values().stream()).mapToLong(Image::bytes).sum();
    }

    private static void drop(Image image) {
        if (image != null) {
            Descriptors.close(image.descriptor);
        }
    }

    @Override
    public void close() {
        byVgpu.values().forEach(images -> images.values().forEach(ImageStore::drop));
        byVgpu.clear();
        writing.values().forEach(unfinished -> drop(unfinished.image));
        writing.clear();
    }
}
