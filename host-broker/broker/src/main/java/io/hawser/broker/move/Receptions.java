package io.hawser.broker.move;

import io.hawser.broker.model.RefusedException;
import io.hawser.broker.model.Traveller;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.pool.WorkerPools;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.vgpu.MovePlaces;
import io.netty.channel.EventLoop;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.CompletableFuture;

/** The vGPUs that come here from other brokers of the pool. Event loop only. */
public final class Receptions {
    private final EventLoop loop;
    private final SessionRegistry sessions;
    private final WorkerPools pools;
    private final MovePlaces places;
    private final Moves moves;
    private final List<Reception> running = new ArrayList<>();
    private GiveUp giveUp = (id, done) -> done.run();

    /**
     * What another broker wishes.
     *
     * @param id of the move in the pool's database.
     * @param ticket for the other broker's connections, in hexadecimal.
     * @param gpu as for {@link MovePlaces#gpu}; null for any.
     * @param overTls whether the guests come over TLS.
     * @param limitMs time for the whole move.
     */
    public record Wish(String id, String ticket, String vgpu, String gpu, boolean overTls, long limitMs,
        List<Traveller> sessions) {
        byte[] ticketBytes() {
            return HexFormat.of().parseHex(ticket);
        }
    }

    /** Deletes the rows of moves in the pool's database. */
    @FunctionalInterface
    public interface GiveUp {
        /**
         * Deletes a row.
         *
         * @param given runs on the event loop when it was there, so that the other broker keeps the vGPU. Otherwise
         *     the vGPU is this broker's.
         */
        void delete(String id, Runnable given);
    }

    /** Receives with these parts of the broker. */
    public Receptions(EventLoop loop, SessionRegistry sessions, WorkerPools pools, MovePlaces places, Moves moves) {
        this.loop = loop;
        this.sessions = sessions;
        this.pools = pools;
        this.places = places;
        this.moves = moves;
    }

    /** Joins a pool. The call precedes the first arrival. */
    public void join(GiveUp with) {
        giveUp = with;
    }

    /**
     * Begins an arrival.
     *
     * @param vgpu the vGPU at its present broker.
     * @return UUID of its GPU here, when workers are there for all sessions.
     * @throws VgpuException when a rule forbids it; nothing has changed then.
     */
    public CompletableFuture<String> begin(Wish wish, Vgpu vgpu) throws VgpuException {
        MovePlaces.Plan plan = places.expect(vgpu, wish.gpu(), wish.sessions().size());
        Reception reception = new Reception(this, wish, plan);
        running.add(reception);
        moves.add(reception);
        return reception.begin().thenApply(taken -> plan.to());
    }

    /**
     * Takes the connection of another broker, which brings a session.
     *
     * @return the next step, for the time when the other broker knows.
     * @throws RefusedException when nobody expects it; it stays the caller's.
     */
    public Runnable deliver(byte[] ticket, long sessionId, Held stream) throws RefusedException {
        for (Reception reception : running) {
            if (reception.has(ticket)) {
                return reception.deliver(sessionId, stream);
            }
        }
        throw new RefusedException("no session is expected with this ticket");
    }

    /**
     * Takes the connection of a guest whose session comes here.
     *
     * @param keyId of the token that it has proved.
     * @param nonce of its session's HELLO.
     * @return the next step, for the time when the guest knows.
     * @throws RefusedException when nobody expects it; it stays the caller's.
     */
    public Runnable resume(long sessionId, String keyId, byte[] nonce, Held guest) throws RefusedException {
        for (Reception reception : running) {
            if (reception.has(sessionId)) {
                return reception.resume(sessionId, keyId, nonce, guest);
            }
        }
        throw new RefusedException("no session with this number is on its way here: sessionId=" + sessionId);
    }

    /** The pool's database has given a vGPU to this broker: its sessions start, if it comes with some. */
    public void arrived(String vgpu) {
        List.copyOf(running).stream().filter(reception -> reception.vgpu().equals(vgpu)).forEach(Reception::commit);
    }

    /** The arrival of a vGPU is not expected any more, unless the database says otherwise. */
    public void cancel(String id, String reason) {
        List.copyOf(running).stream().filter(reception -> reception.id().equals(id))
            .forEach(reception -> reception.fail(reason));
    }

    void giveUp(Reception reception, String reason) {
        giveUp.delete(reception.id(), () -> {
            if (running.contains(reception)) {
                reception.cancel(reason);
            }
        });
    }

    /** The arrival is decided. */
    void remove(Reception reception) {
        running.remove(reception);
    }

    /** No worker owes a message. */
    void end(Reception reception) {
        moves.remove(reception);
    }

    EventLoop loop() {
        return loop;
    }

    SessionRegistry sessions() {
        return sessions;
    }

    WorkerPools pools() {
        return pools;
    }

    MovePlaces places() {
        return places;
    }
}
