package io.hawser.hypervisor.libvirt;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.Json;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Base64;
import java.util.Map;
import java.util.Random;
import org.junit.jupiter.api.Test;

class GuestAgentTest {
    /** The agent's side of the three commands, with one file of limited size. */
    private static final class Agent implements GuestAgent.Channel {
        private final ByteArrayOutputStream file = new ByteArrayOutputStream();
        private final int room;
        private String path = "";
        private boolean closed;

        Agent(int room) {
            this.room = room;
        }

        @Override
        public String send(String command, int timeoutS) {
            try {
                Map<?, ?> message = (Map<?, ?>) Json.read(command);
                Map<?, ?> arguments = (Map<?, ?>) message.get("arguments");
                return switch ((String) message.get("execute")) {
                    case "guest-file-open" -> {
                        path = (String) arguments.get("path");
                        yield "{\"return\":1000}";
                    }
                    case "guest-file-write" -> {
                        byte[] bytes = Base64.getDecoder().decode((String) arguments.get("buf-b64"));
                        int taken = Math.min(bytes.length, room - file.size());
                        file.write(bytes, 0, taken);
                        yield "{\"return\":{\"count\":" + taken + ",\"eof\":false}}";
                    }
                    case "guest-file-close" -> {
                        closed = true;
                        yield "{\"return\":{}}";
                    }
                    default -> throw new IllegalArgumentException(command);
                };
            } catch (IOException broken) {
                throw new UncheckedIOException(broken);
            }
        }
    }

    @Test
    void shouldWriteFilesOfAnyLength() {
        Random random = new Random(7);
        for (int length : new int[] {0, 1, 32 * 1024, 32 * 1024 + 1, 200_000}) {
            byte[] content = new byte[length];
            random.nextBytes(content);
            Agent agent = new Agent(Integer.MAX_VALUE);
            assertTrue(new GuestAgent(agent).write("/run/hawser/\"x\".toml", content));
            assertArrayEquals(content, agent.file.toByteArray());
            assertEquals("/run/hawser/\"x\".toml", agent.path);
            assertTrue(agent.closed);
        }
    }

    @Test
    void shouldFailWhenTheGuestsDiskIsFull() {
        Agent agent = new Agent(40_000);
        assertFalse(new GuestAgent(agent).write("/run/hawser/guest.toml", new byte[50_000]));
        assertTrue(agent.closed);
    }

    @Test
    void shouldFailWhenTheAgentRefuses() {
        assertFalse(new GuestAgent((command, timeoutS) -> "{\"error\":{\"class\":\"CommandNotFound\"}}")
            .write("/run/hawser/guest.toml", new byte[1]));
    }
}
