package io.hawser.worker.channel.tcp;

import io.hawser.shm.wire.RecordLayout;
import io.hawser.shm.wire.RecordWriter;
import io.hawser.worker.channel.GuestWatch;
import io.hawser.worker.channel.Link;
import io.hawser.worker.channel.LinkPosition;
import io.hawser.worker.channel.RecordCutter;
import io.hawser.worker.channel.RecordHandler;
import io.hawser.worker.memory.StagingPool.Staging;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import io.netty.channel.ChannelOutboundBuffer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.MultiThreadIoEventLoopGroup;
import io.netty.channel.WriteBufferWaterMark;
import io.netty.channel.epoll.EpollIoHandler;
import io.netty.channel.epoll.EpollSocketChannel;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.concurrent.TimeUnit;

/**
 * The link to a guest over TCP. Small records gather in one buffer until the flush, so that a burst of replies costs
 * one system call. Data of copies is sent from its own memory.
 */
public final class TcpLink extends ChannelInboundHandlerAdapter implements Link {
    private static final int RECEIVE_BYTES = 64 * 1024;
    private static final int GATHER_BYTES = 16 * 1024;
    private static final long LINGER_MS = 1000;
    private static final int LOW_WATER_BYTES = 1 << 20;
    private static final int HIGH_WATER_BYTES = 4 << 20;

    private final ReceiveBuffers buffers = new ReceiveBuffers(RECEIVE_BYTES);
    private final SpinningSelect select = new SpinningSelect();
    private final EventLoopGroup group = new MultiThreadIoEventLoopGroup(1,
        EpollIoHandler.newFactory(0, () -> select));
    private final EpollSocketChannel channel;
    private RecordHandler handler;
    private RecordCutter cutter;
    private ByteBuf gathered;
    private long dataBytes;
    private boolean paused;
    private boolean halted;

    /**
     * Takes over a connected socket, but reads nothing yet.
     *
     * @param descriptor the socket; this link closes it.
     */
    public TcpLink(int descriptor) {
        channel = new EpollSocketChannel(descriptor);
        channel.config().setAutoRead(false).setTcpNoDelay(true).setKeepAlive(true)
            .setTcpKeepIdle(GuestWatch.KEEPALIVE_IDLE_S).setTcpKeepIntvl(GuestWatch.KEEPALIVE_INTERVAL_S)
            .setTcpKeepCnt(GuestWatch.KEEPALIVE_PROBES)
            .setRecvByteBufAllocator(buffers)
            .setWriteBufferWaterMark(new WriteBufferWaterMark(LOW_WATER_BYTES, HIGH_WATER_BYTES));
        group.register(channel).syncUninterruptibly();
    }

    @Override
    public void execute(Runnable task) {
        channel.eventLoop().execute(task);
    }

    @Override
    public boolean isSessionThread() {
        return channel.eventLoop().inEventLoop();
    }

    @Override
    public void schedule(Runnable task, long delayMs) {
        channel.eventLoop().schedule(task, delayMs, TimeUnit.MILLISECONDS);
    }

    @Override
    public void open(RecordHandler recordHandler) {
        prepare(recordHandler);
        channel.config().setAutoRead(true);
    }

    @Override
    public void open(RecordHandler recordHandler, LinkPosition from) {
        prepare(recordHandler);
        cutter.resume(from);
        handler.drained();
        channel.config().setAutoRead(true);
    }

    private void prepare(RecordHandler recordHandler) {
        handler = recordHandler;
        cutter = new RecordCutter(recordHandler);
        buffers.serve(cutter);
        channel.pipeline().addLast(this);
        select.attend(recordHandler);
    }

    @Override
    public void halt() {
        halted = true;
        channel.config().setAutoRead(false);
    }

    @Override
    public void proceed() {
        halted = false;
        channel.config().setAutoRead(!paused);
    }

    @Override
    public boolean hasSentAll() {
        ChannelOutboundBuffer outbound = channel.unsafe().outboundBuffer();
        return (gathered == null || !gathered.isReadable()) && dataBytes == 0
            && (outbound == null || outbound.totalPendingWriteBytes() == 0);
    }

    @Override
    public LinkPosition position() {
        return cutter.position();
    }

    @Override
    public int socket() {
        return channel.fd().intValue();
    }

    @Override
    public void watchGuest(Runnable hung) {
        GuestWatch.start(channel.fd().intValue(), channel::isOpen, this, hung);
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        select.awake();
        try {
            if (cutter.isDiscarding()) {
                return;
            }
            if (buffers.isInPlace(bytes)) {
                cutter.received(bytes.readableBytes());
            } else {
                cutter.accept(MemorySegment.ofBuffer(bytes.nioBuffer()), 0, bytes.readableBytes());
            }
        } finally {
            bytes.release();
        }
    }

    @Override
    public void channelReadComplete(ChannelHandlerContext context) {
        handler.drained();
    }

    @Override
    public void channelWritabilityChanged(ChannelHandlerContext context) {
        if (paused && channel.isWritable()) {
            paused = false;
            channel.config().setAutoRead(!halted);
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        cutter.dropPartial();
        handler.gone("the guest has closed the connection");
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable cause) {
        cutter.dropPartial();
        handler.gone("the connection failed: " + cause.getMessage());
    }

    @Override
    public void append(RecordWriter record, int lengthBytes) {
        room(lengthBytes).writeBytes(record.array(), 0, lengthBytes);
    }

    @Override
    public void appendData(RecordWriter prefix, int prefixBytes, Staging piece, int bytes, Runnable sent) {
        int padded = bytes + RecordLayout.ALIGNMENT_BYTES - 1 & -RecordLayout.ALIGNMENT_BYTES;
        ByteBuffer view = piece.view();
        if (bytes <= GATHER_BYTES / 4) {
            room(prefixBytes + padded).writeBytes(prefix.array(), 0, prefixBytes);
            view.limit(bytes).position(0);
            gathered.writeBytes(view).writeZero(padded - bytes);
            view.clear();
            sent.run();
            return;
        }
        append(prefix, prefixBytes);
        writeGathered();
        for (int i = bytes; i < padded; i++) {
            // The bytes there belong to this session, so no secret leaks, but the wire format demands zeros.
            view.put(i, (byte) 0);
        }
        dataBytes += padded;
        channel.write(Unpooled.wrappedBuffer(view.slice(0, padded))).addListener(done -> {
            dataBytes -= padded;
            sent.run();
        });
    }

    private ByteBuf room(int bytes) {
        if (gathered != null && gathered.writableBytes() < bytes) {
            writeGathered();
        }
        if (gathered == null) {
            gathered = channel.alloc().directBuffer(Math.max(bytes, GATHER_BYTES));
        }
        return gathered;
    }

    private void writeGathered() {
        if (gathered != null && gathered.isReadable()) {
            ByteBuf full = gathered;
            gathered = null;
            channel.write(full, channel.voidPromise());
        }
    }

    @Override
    public void flush() {
        writeGathered();
        channel.flush();
    }

    @Override
    public long unreadBytes() {
        ChannelOutboundBuffer outbound = channel.unsafe().outboundBuffer();
        return outbound == null ? 0 : outbound.totalPendingWriteBytes() - dataBytes;
    }

    @Override
    public void pauseUntilRead() {
        if (!paused) {
            paused = true; // further requests stay in the kernel's socket buffers
            channel.config().setAutoRead(false);
        }
    }

    @Override
    public void discard() {
        if (cutter != null) {
            cutter.discard();
        }
    }

    @Override
    public void dropPartial() {
        if (cutter != null) { // otherwise the guest has stayed with another worker
            cutter.dropPartial();
        }
    }

    /**
     * Closes the sending half after all records have been sent. Then reads and drops input until the guest closes or
     * one second has passed. Closing at once with unread input would reset the connection, and the guest would lose the
     * reason.
     */
    @Override
    public void leave() {
        paused = false;
        channel.config().setAutoRead(true);
        channel.writeAndFlush(Unpooled.EMPTY_BUFFER).addListener(written -> {
            if (written.isSuccess()) {
                channel.shutdownOutput();
            } else {
                channel.close();
            }
        });
        schedule(channel::close, LINGER_MS);
    }

    @Override
    public void close() {
        channel.close();
    }

    @Override
    public void awaitClosed(long limitMs) {
        channel.closeFuture().awaitUninterruptibly(limitMs);
    }

    @Override
    public void shutdown(long limitMs) {
        try {
            execute(this::end);
        } finally {
            group.shutdownGracefully(0, limitMs, TimeUnit.MILLISECONDS).awaitUninterruptibly(limitMs);
        }
    }

    private void end() {
        select.leave();
        if (gathered != null) {
            gathered.release();
            gathered = null;
        }
    }
}
