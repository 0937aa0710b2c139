package io.hawser.hypervisor.tenant;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.hawser.hypervisor.model.VgpuStatus;
import io.hawser.hypervisor.model.Wish;
import java.time.Duration;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/** The reports to a command that waits. A stage's sentence arrives in the waiting thread, which then reports more. */
class FeedbackTest {
    private static final Duration LIMIT = Duration.ofMinutes(10);
    private static final Wish WISH = wish(100);

    private final Feedback feedback = new Feedback();
    private final List<String> stages = new ArrayList<>();

    private static Wish wish(int share) {
        return new Wish("", 0, share, Wish.Mode.SHARED, "any", false, 2, Wish.Transport.SHM, 4 << 20, true, false);
    }

    private static VgpuStatus status(VgpuStatus.State state, String reason) {
        return new VgpuStatus(state, "a", "shm", Instant.EPOCH, reason, "metadata");
    }

    @Test
    void shouldReturnTheOutcomeOfTheWish() throws Exception {
        VgpuStatus ready = status(VgpuStatus.State.READY, "");
        feedback.conclude(WISH, ready, false);
        assertEquals(Optional.of(ready), feedback.await(WISH, LIMIT, stages::add));
        assertEquals(List.of(), stages);
    }

    @Test
    void shouldReportEachStageBeforeTheOutcome() throws Exception {
        VgpuStatus ready = status(VgpuStatus.State.READY, "");
        feedback.conclude(WISH, status(VgpuStatus.State.WAITING, "for the guest"), true);
        assertEquals(Optional.of(ready), feedback.await(WISH, LIMIT, stage -> {
            stages.add(stage);
            if (stage.equals("for the guest")) {
                feedback.progress("plugging");
            } else {
                feedback.conclude(WISH, ready, false);
            }
        }));
        assertEquals(List.of("for the guest", "plugging"), stages);
    }

    @Test
    void shouldIgnoreTheOutcomeOfAnotherWish() {
        feedback.conclude(wish(30), status(VgpuStatus.State.READY, ""), false);
        assertThrows(TimeoutException.class, () -> feedback.await(WISH, Duration.ofMillis(1), stages::add));
    }

    @Test
    void shouldIgnoreReportsFromBeforeTheCommand() {
        feedback.progress("plugging");
        feedback.conclude(WISH, status(VgpuStatus.State.READY, ""), false);
        feedback.begin();
        assertThrows(TimeoutException.class, () -> feedback.await(WISH, Duration.ofMillis(1), stages::add));
        assertEquals(List.of(), stages);
    }

    @Test
    void shouldEndTheWaitWhenTheTenantIsRemoved() throws Exception {
        feedback.progress("plugging");
        assertEquals(Optional.empty(), feedback.await(WISH, LIMIT, stage -> feedback.end()));
    }
}
