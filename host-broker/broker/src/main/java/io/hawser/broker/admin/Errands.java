package io.hawser.broker.admin;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.hawser.broker.model.MoveOutcome;
import io.hawser.broker.model.PeerBroker;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.move.Receptions;
import io.hawser.broker.session.SessionRegistry;
import io.hawser.broker.session.VgpuUsage;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.PeerStore;
import io.hawser.broker.vgpu.VgpuDraft;
import java.sql.SQLException;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import org.jboss.logging.Logger;

/**
 * Acts of one broker of a pool on what another one has. The database carries the request and the answer. Brokers
 * therefore need no connection to each other, and no credential of each other. Thread-safe.
 */
public final class Errands {
    private static final Logger LOG = Logger.getLogger(Errands.class);
    private static final ObjectMapper JSON = new ObjectMapper().findAndRegisterModules();
    private static final long LOOK_MS = 50;
    private static final long LONG_LOOK_MS = 500;
    private static final long SHORT_NS = TimeUnit.SECONDS.toNanos(5);

    private final Executor loop;
    private final Database database;
    private final BrokerPool pool;
    private final VgpuService service;
    private final SessionRegistry sessions;
    private MoveActs moves; // null before use()

    /** What a request asks for. */
    enum What {
        CHANGE_VGPU,
        DELETE_VGPU,
        END_SESSION,
        MOVE_VGPU,
        DRAIN_BROKER,
        UNDRAIN_BROKER,
        /** Asks for the use of a vGPU. */
        USE_OF_VGPU,
        /** The use of a vGPU before it has moved here. */
        ADD_USE_OF_VGPU,
        /** A vGPU comes from the asking broker. */
        RECEIVE_VGPU,
        /** It does not come after all. */
        CANCEL_VGPU;

        /** How long the asker waits, while the asked broker is alive. */
        int limitSeconds() {
            return this == MOVE_VGPU || this == DRAIN_BROKER ? PeerStore.LONG_ACT_SECONDS
                : PeerStore.ACT_SECONDS;
        }
    }

    /**
     * A request to another broker.
     *
     * @param vgpu name; empty for a session.
     * @param draft of a change; null otherwise.
     * @param force whether a deletion ends sessions.
     * @param expectedOwner as in {@link VgpuService#change(String, VgpuDraft, String)}.
     * @param session id; 0 for a vGPU.
     * @param move to other GPUs, for a vGPU that moves; null otherwise.
     * @param wish of a vGPU that comes; null otherwise.
     * @param used by the sessions of a vGPU that has come; null otherwise.
     */
    record Request(What what, String vgpu, VgpuDraft draft, boolean force, String expectedOwner, long session,
        MoveService.Wish move, Receptions.Wish wish, VgpuUsage used) {
        /** A request of the other kinds. */
        Request(What what, String vgpu, VgpuDraft draft, boolean force, String expectedOwner, long session) {
            this(what, vgpu, draft, force, expectedOwner, session, null, null, null);
        }

        /** The end of a session. */
        static Request endSession(long id) {
            return new Request(What.END_SESSION, "", null, false, null, id);
        }

        /** A move of a vGPU. */
        static Request move(String vgpu, MoveService.Wish move) {
            return new Request(What.MOVE_VGPU, vgpu, null, false, null, 0, move, null, null);
        }

        /** An act on the asked broker. */
        static Request ofBroker(What what) {
            return new Request(what, "", null, false, null, 0);
        }

        /** The arrival of a vGPU, or its end. */
        static Request arrival(What what, Receptions.Wish wish) {
            return new Request(what, wish.vgpu(), null, false, null, 0, null, wish, null);
        }

        /** The question for the use of a vGPU. */
        static Request use(String vgpu) {
            return new Request(What.USE_OF_VGPU, vgpu, null, false, null, 0);
        }

        /** The use of a vGPU before its move. */
        static Request used(String vgpu, VgpuUsage used) {
            return new Request(What.ADD_USE_OF_VGPU, vgpu, null, false, null, 0, null, null, used);
        }
    }

    /** Acts of a vGPU's moves. */
    interface MoveActs {
        /** Moves a vGPU of this broker. */
        CompletableFuture<MoveOutcome> move(String vgpu, MoveService.Wish wish);

        /** Moves all vGPUs away from this broker. */
        CompletableFuture<MoveService.Drained> drain();

        /** Ends {@link #drain}. */
        CompletableFuture<Void> undrain();

        /** Receives a vGPU; completes with the UUID of its GPU here. */
        CompletableFuture<String> receive(Receptions.Wish wish);

        /** Receives it no more. */
        CompletableFuture<Void> cancel(Receptions.Wish wish);
    }

    /** An answer; no kind is success, whose message is the result. */
    private record Answer(VgpuException.Kind kind, String message) {}

    Errands(Executor loop, Database database, BrokerPool pool, VgpuService service, SessionRegistry sessions) {
        this.loop = loop;
        this.database = database;
        this.pool = pool;
        this.service = service;
        this.sessions = sessions;
    }

    /** Uses the acts of moves. The call precedes the first request. */
    void use(MoveActs acts) {
        moves = acts;
    }

    /**
     * Asks another broker, and waits for its answer for a bounded time.
     *
     * @return completes exceptionally with {@link VgpuException} when the broker refuses, or does not answer.
     */
    CompletableFuture<Void> ask(PeerBroker broker, Request request) {
        return askFor(broker, request).thenApply(done -> null);
    }

    /** As {@link #ask}; completes with the result of the act. */
    CompletableFuture<String> askFor(PeerBroker broker, Request request) {
        CompletableFuture<String> result = new CompletableFuture<>();
        Thread.ofVirtual().name("hawser-errand").start(() -> {
            try {
                result.complete(askAndWait(broker, request));
            } catch (VgpuException e) {
                result.completeExceptionally(e);
            } catch (SQLException | RuntimeException e) {
                LOG.errorf("an act could not be passed to broker %s: %s", broker.name(), e.getMessage());
                result.completeExceptionally(new VgpuException(VgpuException.Kind.UNAVAILABLE,
                    "the act could not be passed to the broker that has it; see the log: broker=" + broker.name()));
            }
        });
        return result;
    }

    /** As {@link #ask}; completes with the result of the act. */
    <T> CompletableFuture<T> askFor(PeerBroker broker, Request request, Class<T> type) {
        return askFor(broker, request).thenApply(text -> {
            try {
                return parse(text, type);
            } catch (SQLException e) {
                throw new IllegalStateException(e);
            }
        });
    }

    private String askAndWait(PeerBroker broker, Request request) throws SQLException, VgpuException {
        if (broker.isSilent()) {
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the broker that has it must answer: broker="
                + broker.name() + " silentMs=" + broker.silence().toMillis());
        }
        String id = UUID.randomUUID().toString();
        String text = json(request);
        database.transact(connection -> {
            PeerStore.ask(connection, id, broker.id(), text);
            return null;
        });
        int limitSeconds = request.what.limitSeconds();
        long beginNs = System.nanoTime();
        long waitedNs = 0;
        String answered = null;
        try {
            while (answered == null && waitedNs < TimeUnit.SECONDS.toNanos(limitSeconds) && isAlive(broker)) {
                TimeUnit.MILLISECONDS.sleep(waitedNs < SHORT_NS ? LOOK_MS : LONG_LOOK_MS);
                answered = database.read(connection -> PeerStore.answer(connection, id));
                waitedNs = System.nanoTime() - beginNs;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        database.transact(connection -> {
            PeerStore.forget(connection, id);
            return null;
        });
        if (answered == null) {
            throw new VgpuException(VgpuException.Kind.UNAVAILABLE, "the broker that has it has not answered "
                + (isAlive(broker) ? "in time and may still act" : "before its end") + ": broker=" + broker.name()
                + " waitedS=" + TimeUnit.NANOSECONDS.toSeconds(waitedNs) + " limitS=" + limitSeconds);
        }
        Answer answer = parse(answered, Answer.class);
        if (answer.kind != null) {
            throw new VgpuException(answer.kind, answer.message);
        }
        return answer.message;
    }

    /** Whether the process that has been asked is still there, as far as the pool knows. */
    private boolean isAlive(PeerBroker asked) {
        return pool.broker(asked.id()).filter(now -> now.epoch() == asked.epoch() && !now.isSilent()).isPresent();
    }

    /** Begins the requests of other brokers. The pool's thread only. */
    void look() {
        try {
            if (!database.read(connection -> PeerStore.isAsked(connection, pool.me().id()))) {
                return;
            }
            database.transact(connection -> PeerStore.begin(connection, pool.me().id())).forEach(this::begin);
        } catch (SQLException e) {
            LOG.debugf("the acts of other brokers could not be read: %s", e.getMessage()); // the heartbeat reports it
        }
    }

    private void begin(String id, String text) {
        CompletableFuture<?> act;
        try {
            act = execute(parse(text, Request.class));
        } catch (SQLException e) {
            act = CompletableFuture.failedFuture(VgpuException.invalid("this broker does not know the act: "
                + e.getMessage()));
        }
        act.handle((done, failure) -> {
            Answer answer = failure == null ? new Answer(null, result(done)) : answer(failure);
            Thread.ofVirtual().name("hawser-errand").start(() -> send(id, answer));
            return null;
        });
    }

    private CompletableFuture<?> execute(Request request) {
        return switch (request.what) {
            case CHANGE_VGPU -> service.change(request.vgpu, request.draft, request.expectedOwner);
            case DELETE_VGPU -> service.delete(request.vgpu, request.force, request.expectedOwner);
            case END_SESSION -> sessions.end(request.session, "the administrator ended the session")
                .thenCompose(existed -> existed ? CompletableFuture.completedFuture(null)
                    : CompletableFuture.failedFuture(new VgpuException(VgpuException.Kind.MISSING,
                        "there is no such session: id=" + request.session)));
            case MOVE_VGPU -> moves.move(request.vgpu, request.move);
            case DRAIN_BROKER -> moves.drain();
            case UNDRAIN_BROKER -> moves.undrain();
            case USE_OF_VGPU -> CompletableFuture.supplyAsync(() -> sessions.usage(request.vgpu), loop);
            case ADD_USE_OF_VGPU -> CompletableFuture.runAsync(() -> sessions.addUsage(request.vgpu, request.used),
                loop);
            case RECEIVE_VGPU -> moves.receive(request.wish);
            case CANCEL_VGPU -> moves.cancel(request.wish);
        };
    }

    private static String result(Object done) {
        return done == null ? "" : done instanceof String text ? text : json(done);
    }

    private static Answer answer(Throwable failure) {
        Throwable cause = failure instanceof CompletionException ? failure.getCause() : failure;
        if (cause instanceof VgpuException known) {
            return new Answer(known.kind(), known.getMessage());
        }
        LOG.error("an act for another broker has failed", cause);
        return new Answer(VgpuException.Kind.UNAVAILABLE, "the broker that has it has failed; see its log");
    }

    private void send(String id, Answer answer) {
        try {
            String text = json(answer);
            database.transact(connection -> {
                PeerStore.reply(connection, id, text);
                return null;
            });
        } catch (SQLException e) {
            LOG.warnf("the answer to another broker's act was not written: %s", e.getMessage());
        }
    }

    private static String json(Object value) {
        try {
            return JSON.writeValueAsString(value);
        } catch (JsonProcessingException e) {
            throw new IllegalStateException(e);
        }
    }

    private static <T> T parse(String text, Class<T> type) throws SQLException {
        try {
            return JSON.readValue(text, type);
        } catch (JsonProcessingException e) {
            throw new SQLException("an act in the database must be of a form that this broker knows: "
                + e.getOriginalMessage(), e);
        }
    }
}
