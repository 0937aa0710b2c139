package io.hawser.broker.pool;

import io.hawser.broker.model.Printable;
import io.netty.buffer.ByteBuf;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInboundHandlerAdapter;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/** Writes a worker's standard output and error to the broker's log, line by line, bounded in length and rate. */
final class WorkerLog extends ChannelInboundHandlerAdapter {
    private static final Logger LOG = Logger.getLogger("io.hawser.worker");
    /** Bytes of a line; the log cuts longer lines. Stops a worker from making the broker hold its output. */
    private static final int MAX_LINE_BYTES = 4096;
    /**
     * Lines in a second; the log counts and drops the rest. Stops a worker from filling the disk and hiding other
     * lines.
     */
    private static final int MAX_LINES_A_SECOND = 200;

    private final long workerId;
    private final byte[] line = new byte[MAX_LINE_BYTES];
    private int lineBytes;
    private long windowNs = System.nanoTime();
    private int linesInWindow;
    private long dropped;
    private String lastLine = "";

    WorkerLog(long workerId) {
        this.workerId = workerId;
    }

    @Override
    public void channelRead(ChannelHandlerContext context, Object message) {
        ByteBuf bytes = (ByteBuf) message;
        try {
            while (bytes.isReadable()) {
                byte next = bytes.readByte();
                if (next == '\n') {
                    flush();
                } else if (lineBytes < line.length) {
                    line[lineBytes++] = next;
                }
            }
        } finally {
            bytes.release();
        }
    }

    @Override
    public void channelInactive(ChannelHandlerContext context) {
        if (lineBytes > 0) {
            flush();
        }
        logDropped();
    }

    @Override
    public void exceptionCaught(ChannelHandlerContext context, Throwable failure) {
        LOG.debugf("[worker %d] log: %s", workerId, failure.getMessage());
        context.close();
    }

    /** The last line that is not part of a stack trace, for the reason of the worker's end. */
    String lastLine() {
        return lastLine;
    }

    private void flush() {
        String text = Printable.text(new String(line, 0, lineBytes, StandardCharsets.UTF_8), MAX_LINE_BYTES);
        if (!text.startsWith(" ")) {
            // Indented lines belong to a stack trace; the line above them names the failure.
            lastLine = Printable.text(text, WorkerMessage.MAX_TEXT_CHARACTERS);
        }
        lineBytes = 0;
        long now = System.nanoTime();
        if (now - windowNs > TimeUnit.SECONDS.toNanos(1)) {
            windowNs = now;
            linesInWindow = 0;
            logDropped();
        }
        if (++linesInWindow > MAX_LINES_A_SECOND) {
            dropped++;
        } else {
            LOG.infof("[worker %d] %s", workerId, text);
        }
    }

    private void logDropped() {
        if (dropped > 0) {
            LOG.warnf("[worker %d] wrote too much: droppedLines=%d", workerId, dropped);
            dropped = 0;
        }
    }
}
