package io.hawser.ctl.terminal;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.hawser.client.EventReader;
import org.junit.jupiter.api.Test;

class LivePictureTest {
    private static String session(int id, int calls) {
        return "{\"id\":" + id + ",\"vgpu\":\"one\",\"state\":\"running\",\"program\":\"p" + id + "\",\"statistics\":{"
            + "\"calls\":" + calls + ",\"roundTrips\":" + calls / 10 + ",\"deviceBytes\":1048576,\"gpuTimeMs\":1500}}";
    }

    private static LivePicture picture() {
        LivePicture picture = new LivePicture();
        assertTrue(picture.apply(new EventReader.Event("picture", "{\"time\":\"2026-11-21T12:00:00Z\",\"broker\":{"
            + "\"version\":\"1\",\"maxSessions\":32},\"gpus\":[{\"index\":0,\"uuid\":\"u\",\"name\":\"G\","
            + "\"powerWatts\":null,\"health\":\"ok\"}],"
            + "\"vgpus\":[{\"name\":\"one\",\"memoryBytes\":0},{\"name\":\"two\","
            + "\"memoryBytes\":4194304,\"swap\":{\"swappedBytes\":2097152}}],"
            + "\"sessions\":[" + session(1, 100) + "," + session(2, 100) + "]}")));
        return picture;
    }

    private static String line(LivePicture picture, String beginning) {
        return picture.lines().stream().map(String::strip).filter(l -> l.startsWith(beginning)).findFirst().orElse("");
    }

    @Test
    void shouldShowRatesFromTheTimesOfTheBroker() {
        LivePicture picture = picture();
        assertTrue(picture.apply(new EventReader.Event("change", "{\"time\":\"2026-11-21T12:00:02Z\",\"gpus\":[],"
            + "\"vgpus\":[],\"removedVgpus\":[\"two\"],\"sessions\":[" + session(2, 4100)
            + "],\"removedSessions\":[]}")));
        assertTrue(line(picture, "hawser 1").contains("sessions 2/32  calls/s 2.0k  waits/s 200"), picture.lines()
            .toString());
        assertTrue(line(picture, "2  one").contains("1 MiB     2.0k      200"), line(picture, "2  one"));
        assertTrue(picture.lines().indexOf(picture.lines().stream().filter(l -> l.contains(" p2 ")).findFirst()
            .orElseThrow()) < picture.lines().indexOf(
                picture.lines().stream().filter(l -> l.contains(" p1 "))
                    .findFirst().orElseThrow()),
            "the busiest is first");
        assertEquals("", line(picture, "two"));
        assertTrue(line(picture, "0  G").contains("   -  "), "a sensor that is not there");
    }

    @Test
    void shouldShowTheMemoryOnTheHostOfSwappableVgpus() {
        assertTrue(line(picture(), "two").matches("two +4 MiB +0 B +2 MiB +0 .*"), line(picture(), "two"));
        assertTrue(line(picture(), "one").matches("one +best effort +0 B +- +0 .*"), line(picture(), "one"));
    }

    @Test
    void shouldShowTheBrokersOfAPool() {
        LivePicture picture = new LivePicture();
        String gpus = "{\"index\":0,\"uuid\":\"u\",\"name\":\"G\",\"health\":\"ok\",\"broker\":\"left\"},"
            + "{\"index\":0,\"uuid\":\"u\",\"name\":\"G\",\"health\":\"ok\",\"broker\":\"right\"}";
        picture.apply(new EventReader.Event("picture", "{\"time\":\"2026-11-21T12:00:00Z\",\"broker\":{\"version\":"
            + "\"1\",\"guestEndpoint\":\"h:1\",\"name\":\"left\",\"poolProblem\":\"admits no guests\"},\"gpus\":["
            + gpus + "],\"vgpus\":[{\"name\":\"one\",\"broker\":\"\"},{\"name\":\"two\",\"broker\":\"right\"}],"
            + "\"sessions\":[{\"id\":1000000001,\"vgpu\":\"two\",\"broker\":\"right\"}]}"));
        assertTrue(picture.lines().getFirst().startsWith("hawser 1 at h:1 (left)  "), picture.lines().getFirst());
        assertEquals("admits no guests", picture.lines().get(2));
        assertTrue(line(picture, "0  left ").contains("  G "), "two GPUs with the same UUID");
        assertTrue(line(picture, "0  right ").contains("  G "), picture.lines().toString());
        assertTrue(line(picture, "one ").matches("one +- .*"), line(picture, "one"));
        assertTrue(line(picture, "two ").matches("two +right .*"), line(picture, "two"));
        assertTrue(line(picture, "1000000001 ").matches("1000000001 +right +two .*"), line(picture, "1000000001"));
        picture.apply(new EventReader.Event("change",
            "{\"time\":\"2026-11-21T12:00:01Z\",\"removedGpus\":[\"right/u\"]}"));
        assertEquals("", line(picture, "0  right "));
        assertTrue(line(picture, "0  left ").contains("  G "));
    }

    @Test
    void shouldForgetSessionsThatAreOverAndTellEvents() {
        LivePicture picture = picture();
        picture.apply(new EventReader.Event("change", "{\"time\":\"2026-11-21T12:00:01Z\",\"removedSessions\":[2]}"));
        assertEquals("", line(picture, "2  one"));
        assertTrue(line(picture, "1  one").contains(" 0 "), "a session that is not in a change has done nothing");
        assertTrue(picture.apply(new EventReader.Event("event",
            "{\"time\":\"2026-11-21T12:00:01Z\",\"text\":\"a\\u001b\"}")));
        assertTrue(picture.lines().get(1).endsWith("  a?"), picture.lines().get(1));
        assertFalse(picture.apply(new EventReader.Event("other", "")));
    }
}
