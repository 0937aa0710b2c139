package io.hawser.worker.channel.shm;

import io.hawser.shm.os.EventFd;
import io.hawser.shm.region.RegionLayout;
import io.hawser.shm.ring.RingReader;
import io.hawser.shm.ring.RingWriter;
import io.hawser.worker.channel.LinkPosition;
import io.hawser.worker.channel.ring.GuestRings;
import io.hawser.worker.channel.ring.RingLink;
import io.hawser.worker.channel.ring.RingSleep;

/** The link to a guest in a slot of a region. */
public final class ShmLink extends RingLink {
    /**
     * Starts the session thread.
     *
     * @param region the guest's region; the caller closes it after {@link #shutdown}.
     * @param doorbell eventfd by which a guest of KIND_MACHINE wakes this worker, or null; the caller closes it.
     */
    public ShmLink(SharedRegion region, EventFd doorbell) {
        super(new SlotRings(region, ShmSleep.of(region, doorbell), null));
        start();
    }

    /**
     * As the other constructor, for a guest that another worker has served.
     *
     * @param from where that worker's link has stopped.
     * @throws IllegalArgumentException if the positions cannot be those of a ring.
     */
    public ShmLink(SharedRegion region, EventFd doorbell, LinkPosition from) {
        super(new SlotRings(region, ShmSleep.of(region, doorbell), from));
        start();
    }

    private record SlotRings(SharedRegion region, RingSleep sleep, LinkPosition from) implements GuestRings {
        @Override
        public RingReader commands() {
            int slot = region.place().slot();
            return from == null ? RingReader.command(region.memory(), region.geometry(), slot)
                : RingReader.command(region.memory(), region.geometry(), slot, from.commandPosition());
        }

        @Override
        public RingWriter replies() {
            int slot = region.place().slot();
            return from == null ? RingWriter.reply(region.memory(), region.geometry(), slot)
                : RingWriter.reply(region.memory(), region.geometry(), slot, from.replyPosition(), from.replyHead());
        }

        @Override
        public void committed() {
            region.wakeReader();
        }

        @Override
        public void released() {
            region.wakeSender();
        }

        @Override
        public String departure() {
            int state = region.guestState();
            return switch (state) {
                case RegionLayout.GUEST_CLAIMED -> null;
                case RegionLayout.GUEST_LEFT -> "the guest has left the region";
                case RegionLayout.GUEST_ABANDONED -> "the guest process has died";
                default -> "the guest has given up its slot: state=" + state;
            };
        }
    }
}
