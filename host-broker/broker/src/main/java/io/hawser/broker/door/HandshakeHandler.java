package io.hawser.broker.door;

import io.hawser.broker.model.Carrier;
import io.hawser.broker.model.Guest;
import io.hawser.broker.model.PeerName;
import io.hawser.broker.model.Printable;
import io.hawser.broker.model.Refusal;
import io.hawser.broker.model.RefusedException;
import io.hawser.broker.move.Held;
import io.hawser.broker.posix.Posix;
import io.hawser.broker.posix.PosixException;
import io.hawser.broker.session.Session;
import io.hawser.broker.status.StatusText;
import io.hawser.broker.token.Token;
import io.hawser.shm.wire.HandshakeProof;
import io.hawser.shm.wire.RecordLayout;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.epoll.EpollSocketChannel;
import io.netty.handler.codec.DecoderException;
import io.netty.util.ReferenceCountUtil;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketAddress;
import java.time.Instant;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Consumer;
import org.jboss.logging.Logger;

/** The broker's side of a connection: HELLO, CHALLENGE, PROOF, then the handover to a worker. Event loop only. */
final class HandshakeHandler extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = Logger.getLogger(HandshakeHandler.class);
    /** Time for a rejected peer to read the reason; closing at once would reset the connection before that. */
    private static final int LINGER_MS = 1000;
    private static final String TOO_EARLY = "the guest must send nothing between PROOF and WELCOME";

    private enum Step { HELLO, PROOF, PROVED, ADMITTED, ANSWERED, REFUSED, HANDED_OVER }

    private final DoorContext door;
    private final HandshakeDecoder decoder;
    private final InetSocketAddress behind;
    private final long connectedNs = System.nanoTime();
    private Step step = Step.HELLO;
    private ConnectionLimits.Place place;
    private String address = "";
    private String vgpu = ""; // set after the proof of the token
    private int port;
    private Future<?> timeout;
    private HandshakeRecords.Hello hello;
    private TokenChallenge challenge;
    private Session session;
    private Handover handover;

    /**
     * Serves one connection.
     *
     * @param behind the address of the guest behind a relay; null when the peer is the guest.
     */
    HandshakeHandler(DoorContext door, HandshakeDecoder decoder, InetSocketAddress behind) {
        this.door = door;
        this.decoder = decoder;
        this.behind = behind;
    }

    @Override
    public void channelActive(ChannelHandlerContext context) {
        SocketAddress peer = behind == null ? context.channel().remoteAddress() : behind;
        if (!(peer instanceof InetSocketAddress remote)) {
            // The peer has left between accept and this call.
            context.close();
            return;
        }
        address = remote.getAddress().getHostAddress();
        port = remote.getPort();
        String name = PeerName.of(remote.getAddress());
        place = door.limits().enter(name);
        if (door.limits().isFlooded(name)) {
            place.release(); // at once: Netty reports the close only after the next guests
            door.listener().refused(Carrier.TCP, Refusal.CONNECTIONS);
            context.close();
            return;
        }
        String excess = door.limits().excess(name);
        if (excess != null) {
            refuse(context, Refusal.CONNECTIONS, excess);
            return;
        }
        long timeoutMs = door.handshakeTimeout().toMillis();
        timeout = context.executor().schedule(() -> refuse(context, Refusal.TIMEOUT,
            "the handshake must be over in time: timeoutMs=" + timeoutMs), timeoutMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        try {
            switch (step) {
                case HELLO -> receiveHello(context, (byte[]) message);
                case PROOF -> receiveProof(context, (byte[]) message);
                case PROVED, ADMITTED -> refuse(context, Refusal.PROTOCOL, TOO_EARLY);
                case ANSWERED, REFUSED, HANDED_OVER -> LOG.tracef("dropped after the handshake: peer=%s", address);
            }
        } catch (HandshakeRecords.MalformedException e) {
            refuse(context, Refusal.PROTOCOL, e.getMessage());
        } finally {
            ReferenceCountUtil.release(message);
        }
    }

    private void receiveHello(ChannelHandlerContext context, byte[] record) throws HandshakeRecords.MalformedException {
        if (HandshakeRecords.isDelivery(record)) {
            HandshakeRecords.Delivery delivery = HandshakeRecords.delivery(record);
            step = Step.ADMITTED;
            park(context, held -> door.receptions().deliver(delivery.ticket(), delivery.sessionId(), held));
            return;
        }
        int version = HandshakeRecords.versionOf(record);
        if (version != RecordLayout.HANDSHAKE_VERSION
            && !(version == RecordLayout.OLD_HANDSHAKE_VERSION && door.oldProofs())) {
            refuse(context, Refusal.VERSION, (version == RecordLayout.OLD_HANDSHAKE_VERSION
                ? "this broker takes no proof of old guest packages, which must be updated: guest="
                : "guest and broker must speak the same version of the handshake: guest=")
                + Integer.toUnsignedString(version) + " broker=" + RecordLayout.HANDSHAKE_VERSION);
            return;
        }
        hello = HandshakeRecords.hello(record);
        if (hello.descriptionHash() != door.descriptionHash()) {
            refuse(context, Refusal.VERSION, String.format("guest libraries and broker must be made from the same "
                + "description of the API: guest=%016x broker=%016x", hello.descriptionHash(), door.descriptionHash()));
            return;
        }
        challenge = new TokenChallenge(door.tokens(), hello);
        step = Step.PROOF;
        context.writeAndFlush(Unpooled.wrappedBuffer(challenge.record()));
    }

    /** Only the TLS door relays guests. */
    private boolean isOverTls() {
        return behind != null;
    }

    private void receiveProof(ChannelHandlerContext context, byte[] record) throws HandshakeRecords.MalformedException {
        HandshakeRecords.Proof given = HandshakeRecords.proof(record);
        if ((given.join() != null || given.offer() != null) && challenge.isOld()) {
            refuse(context, Refusal.PROTOCOL, "only a guest of version 2 of the handshake may join a session or offer "
                + "RDMA");
            return;
        }
        Optional<Token> token = challenge.proved(given);
        if (token.isEmpty()) {
            refuse(context, Refusal.TOKEN, challenge.refusal());
            return;
        }
        if (token.get().isExpired(Instant.now())) {
            refuse(context, Refusal.TOKEN, "the token has expired: expires=" + token.get().expires());
            return;
        }
        step = Step.PROVED;
        timeout.cancel(false); // the guest itself says how long it waits for the end of a move
        place.endHandshake();
        // JOIN and RESUME name a session of this broker.
        CompletionStage<String> elsewhere = given.join() != null
            ? CompletableFuture.completedFuture(null) : door.elsewhere().of(token.get().vgpu(), isOverTls(),
                given.purpose() == HandshakeProof.Purpose.SESSION);
        elsewhere.thenAccept(address -> proved(context, given, token.get(), address)).exceptionally(failure -> {
            exceptionCaught(context, failure.getCause());
            return null;
        });
    }

    /**
     * Serves the guest or sends it on.
     *
     * @param elsewhere the address of the vGPU's broker; null for this one.
     */
    private void proved(ChannelHandlerContext context, HandshakeRecords.Proof given, Token token, String elsewhere) {
        if (step != Step.PROVED || !context.channel().isActive()) {
            return; // the guest was refused or has left meanwhile
        }
        if (elsewhere != null) {
            refuse(context, Refusal.MOVED, elsewhere);
            return;
        }
        door.tokens().markUsed(hello.keyId(), Instant.now(), challenge.isOld());
        if (given.purpose() == HandshakeProof.Purpose.STATUS) {
            step = Step.ANSWERED;
            sendLast(context, HandshakeRecords.status(door.status().of(token.vgpu(),
                StatusText.MAX_BYTES)));
            return;
        }
        step = Step.ADMITTED;
        if (decoder.holdsBytes()) {
            refuse(context, Refusal.PROTOCOL, TOO_EARLY);
            return;
        }
        vgpu = token.vgpu();
        if (given.purpose() == HandshakeProof.Purpose.JOIN) {
            join(context, given.join());
            return;
        } else if (given.purpose() == HandshakeProof.Purpose.RESUME) {
            park(context, held -> door.receptions().resume(given.join().sessionId(), hello.keyId(),
                given.join().sessionNonce(), held));
            return;
        }
        Guest guest = new Guest(hello.keyId(), vgpu, Carrier.TCP, peer(), hello.pid(),
            Printable.text(hello.program(), 256), Printable.text(hello.host(), 256));
        try {
            session = door.sessions().admit(guest, place::release);
        } catch (RefusedException e) {
            refuse(context, Refusal.CAPACITY, e.getMessage());
            return;
        }
        session.useNonce(hello.clientNonce(), isOverTls());
        if (given.offer() != null) {
            session.useOffer(given.offer(), door.hasRdma() ? door.sessions().rdmaRefusal(vgpu)
                : "the broker has RDMA switched off (hawser.rdma.enabled)");
        }
        session.onCancel(reason -> refuse(context, Refusal.CAPACITY, reason));
        handover = new Handover(door, (EpollSocketChannel) context.channel(), session, connectedNs, outcome(context));
        handover.start();
    }

    /** Takes the connection off the event loop; its further data is for a worker. */
    private void detach(ChannelHandlerContext context, Consumer<EpollSocketChannel> then) {
        EpollSocketChannel channel = (EpollSocketChannel) context.channel();
        channel.deregister().addListener(detached -> {
            if (!channel.isOpen()) {
                place.release(); // Netty has removed this handler, which therefore does not learn of the end
            } else if (!detached.isSuccess()) {
                LOG.errorf(detached.cause(), "a connection stays on the event loop: peer=%s:%d", address, port);
                refuse(context, Refusal.INTERNAL, "the broker failed; its log says why");
            } else if (decoder.holdsBytes()) {
                refuse(context, Refusal.PROTOCOL, TOO_EARLY);
            } else {
                then.accept(channel);
            }
        });
    }

    /** A part of a broker that holds a connection for a worker. */
    private interface Holder {
        /** Takes one. Returns the next step, which may give it away. */
        Runnable take(Held held) throws RefusedException;
    }

    /** Leaves the connection to an arrival from another broker, and tells the peer. */
    private void park(ChannelHandlerContext context, Holder holder) {
        cancelTimeout();
        place.endHandshake();
        detach(context, channel -> {
            try {
                Runnable next = holder.take(new HeldChannel(channel, place::release));
                step = Step.HANDED_OVER;
                Posix.writeAtOnce(channel.fd().intValue(), HandshakeRecords.parked());
                next.run();
            } catch (RefusedException e) {
                refuse(context, Refusal.CAPACITY, e.getMessage());
            } catch (PosixException e) {
                LOG.debugf("the peer has left: peer=%s:%d: %s", address, port, e.getMessage()); // the move ends
            }
        });
    }

    /** Hands the socket to the worker of the session that it joins. The session counts in the peer's limit, not it. */
    private void join(ChannelHandlerContext context, HandshakeRecords.Join join) {
        detach(context, channel -> give(context, channel, join));
    }

    private void give(ChannelHandlerContext context, EpollSocketChannel channel, HandshakeRecords.Join join) {
        try {
            door.sessions().join(join.sessionId(), hello.keyId(), join.sessionNonce(), channel.fd().intValue());
        } catch (RefusedException e) {
            refuse(context, Refusal.CAPACITY, e.getMessage());
            return;
        } catch (PosixException e) {
            LOG.warnf("session %d did not get a connection: %s", join.sessionId(), e.getMessage());
            refuse(context, Refusal.INTERNAL, "the broker failed; its log says why");
            return;
        }
        step = Step.HANDED_OVER;
        place.release();
        channel.close(); // only the broker's descriptor: the worker's copy keeps the connection open
    }

    private String peer() {
        return address.indexOf(':') >= 0 ? "[" + address + "]:" + port : address + ":" + port;
    }

    private Handover.Outcome outcome(ChannelHandlerContext context) {
        return new Handover.Outcome() {
            @Override
            public boolean isReady() {
                return step == Step.ADMITTED && !decoder.holdsBytes();
            }

            @Override
            public void handedOver() {
                step = Step.HANDED_OVER;
            }

            @Override
            public void guestLeft() {
                giveUp();
                place.release();
            }

            @Override
            public void failed(Refusal refusal, String reason) {
                refuse(context, refusal, reason);
            }
        };
    }

    private void refuse(ChannelHandlerContext context, Refusal refusal, String reason) {
        if (step == Step.ANSWERED || step == Step.REFUSED || step == Step.HANDED_OVER) {
            return;
        }
        step = Step.REFUSED;
        cancelTimeout();
        if (refusal == Refusal.MOVED) {
            // Nothing is wrong and the guest goes on, so there is no event and no warning.
            door.listener().refused(Carrier.TCP, refusal);
            LOG.debugf("guest sent to another broker: peer=%s:%d address=%s", address, port, reason);
        } else {
            door.listener().refused(Carrier.TCP, refusal, vgpu, peer(), reason);
            log(refusal, reason);
        }
        giveUp();
        byte[] record = HandshakeRecords.refused(refusal, reason);
        EpollSocketChannel channel = (EpollSocketChannel) context.channel();
        if (!channel.isRegistered()) {
            Handover.sendAndClose(channel, record);
            place.release();
            return;
        }
        sendLast(context, record);
    }

    /** Sends the last record and closes the connection after the peer's time to read it. */
    private void sendLast(ChannelHandlerContext context, byte[] record) {
        cancelTimeout();
        place.linger();
        EpollSocketChannel channel = (EpollSocketChannel) context.channel();
        context.writeAndFlush(Unpooled.wrappedBuffer(record)).addListener(written -> {
            if (written.isSuccess()) {
                channel.shutdownOutput();
            } else {
                channel.close();
            }
        });
        context.executor().schedule(() -> channel.close(), LINGER_MS, TimeUnit.MILLISECONDS);
    }

    private void giveUp() {
        if (handover != null) {
            handover.cancel();
        }
        if (session != null) {
            door.sessions().abandon(session);
        }
    }

    private void log(Refusal refusal, String reason) {
        if (door.logLimiter().allows()) {
            long dropped = door.logLimiter().takeDropped();
            String more = dropped == 0 ? "" : " (and " + dropped + " more not logged)";
            LOG.warnf("connection refused: peer=%s:%d reason=%s: %s%s", address, port, refusal.label(), reason, more);
        }
    }

    private void cancelTimeout() {
        if (timeout != null) {
            timeout.cancel(false);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        cancelTimeout();
        if (step == Step.HANDED_OVER) {
            return;
        }
        if (step != Step.REFUSED && step != Step.ANSWERED) {
            LOG.debugf("connection closed by its peer: peer=%s:%d step=%s", address, port, step);
            giveUp();
        }
        if (place != null) {
            place.release();
        }
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        switch (failure) {
            case DecoderException bad -> refuse(context, Refusal.PROTOCOL, bad.getMessage());
            case IOException lost -> {
                LOG.debugf("connection lost: peer=%s:%d: %s", address, port, lost.getMessage());
                context.close();
            }
            default -> {
                LOG.errorf(failure, "internal error: handshake failed: peer=%s:%d", address, port);
                refuse(context, Refusal.INTERNAL, "the broker failed; its log says why");
            }
        }
    }
}
