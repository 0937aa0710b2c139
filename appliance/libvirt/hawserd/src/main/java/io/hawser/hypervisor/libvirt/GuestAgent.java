package io.hawser.hypervisor.libvirt;

import io.hawser.client.Json;
import io.hawser.hypervisor.domain.HypervisorException;
import io.hawser.hypervisor.domain.HypervisorException.Reason;
import java.io.IOException;
import java.util.Arrays;
import java.util.Base64;
import java.util.LinkedHashMap;
import java.util.Map;
import org.libvirt.LibvirtException;

/** Writes files through QEMU's guest agent. */
final class GuestAgent {
    private static final int TIMEOUT_S = 5;
    private static final int CHUNK_BYTES = 32 * 1024; // the agent limits a message to some hundred KiB
    private static final int MAX_ERROR_CHARACTERS = 200; // limits the guest's text in the log

    /** The channel to the agent. */
    interface Channel {
        /** Sends a command; returns the answer. */
        String send(String command, int timeoutS) throws LibvirtException;
    }

    private final Channel channel;

    GuestAgent(Channel channel) {
        this.channel = channel;
    }

    /**
     * Writes a file. On failure a partial file may remain.
     *
     * @return false if there is no agent, it does not answer, or it fails.
     */
    boolean write(String path, byte[] content) {
        try {
            Object handle = run("guest-file-open", Map.of("path", path, "mode", "w"));
            if (!(handle instanceof Long)) {
                return false;
            }
            boolean whole = true;
            try {
                for (int from = 0; whole && from < content.length; from += CHUNK_BYTES) {
                    byte[] chunk = Arrays.copyOfRange(content, from, Math.min(content.length, from + CHUNK_BYTES));
                    Map<String, Object> arguments = new LinkedHashMap<>();
                    arguments.put("handle", handle);
                    arguments.put("buf-b64", Base64.getEncoder().encodeToString(chunk));
                    whole = run("guest-file-write", arguments) instanceof Map<?, ?> written
                        && Long.valueOf(chunk.length).equals(written.get("count"));
                }
            } finally {
                run("guest-file-close", Map.of("handle", handle));
            }
            return whole;
        } catch (LibvirtException refused) {
            return false; // no agent is configured or connected, or it does not answer, or it refuses
        }
    }

    private Object run(String command, Map<String, Object> arguments) throws LibvirtException {
        Map<String, Object> message = new LinkedHashMap<>();
        message.put("execute", command);
        message.put("arguments", arguments);
        String answer = channel.send(Json.line(message), TIMEOUT_S);
        try {
            return Json.read(answer) instanceof Map<?, ?> map ? map.get("return") : null;
        } catch (IOException broken) {
            throw new HypervisorException(Reason.REFUSED, "the guest's agent does not answer " + command + " with"
                + " JSON: " + answer.substring(0, Math.min(answer.length(), MAX_ERROR_CHARACTERS)), broken);
        }
    }
}
