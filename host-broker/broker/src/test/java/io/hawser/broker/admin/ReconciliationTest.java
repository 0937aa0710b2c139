package io.hawser.broker.admin;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.broker.TestBroker;
import io.hawser.broker.model.Device;
import io.hawser.broker.model.Origin;
import io.hawser.broker.model.Vgpu;
import io.hawser.broker.model.VgpuException;
import io.hawser.broker.store.Database;
import io.hawser.broker.store.TokenStore;
import io.hawser.broker.store.VgpuStore;
import io.hawser.broker.token.Token;
import io.hawser.broker.token.TokenTable;
import io.hawser.broker.vgpu.Placement;
import io.hawser.broker.vgpu.VgpuDraft;
import io.hawser.broker.vgpu.VgpuTable;
import java.nio.file.Path;
import java.sql.SQLException;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A database that has kept a change without confirming it. */
class ReconciliationTest {
    private static final String GPU = "aaaaaaaa-0000-4000-8000-000000000001";

    @TempDir
    Path folder;

    private final VgpuTable vgpus = new VgpuTable(Placement.of("least-loaded", 1), 1, uuid -> false);
    private final TokenTable tokens = new TokenTable();

    private static Vgpu vgpu(String name) throws VgpuException {
        return new VgpuDraft(null, null, 100L, null, null, null, null, null).create(name, Origin.REST, Vgpu.now());
    }

    private static Token token(String keyId, String vgpu) {
        return TokenService.make(keyId, vgpu, "", Vgpu.now(), null).token();
    }

    /** Makes a change whose confirmation is lost after the commit. */
    private static void lose(Acts acts, Database.Work<Void> work) {
        VgpuException refused = TestBroker.refused(acts.submit(() -> acts.write(Set.of(), connection -> {
            work.with(connection);
            connection.commit();
            throw new SQLException("the answer was lost");
        })));
        assertEquals(VgpuException.Kind.UNAVAILABLE, refused.kind());
    }

    @Test
    void shouldMakeTheDatabaseWhatWasAnsweredBeforeTheNextChange() throws Exception {
        try (Database database = Database.open(TestBroker.config(folder, "normal", Map.of()).database(), folder);
            Acts acts = new Acts(Runnable::run, database, vgpus, tokens)) {
            vgpus.settle(List.of(new Device("GPU", GPU, 1000, "", "")));
            for (String name : List.of("changed", "deleted", "stays")) {
                VgpuTable.Planned planned = vgpus.plan(vgpu(name));
                TestBroker.done(acts.submit(() -> acts.write(Set.of(), connection -> {
                    VgpuStore.insert(connection, planned.vgpu(), planned.home());
                    TokenStore.insert(connection, token(name + "-token", name));
                    return null;
                })));
                vgpus.add(planned);
                tokens.load(token(name + "-token", name));
            }
            Vgpu more = new VgpuDraft(null, null, 900L, null, null, null, null, null)
                .change(vgpus.find("changed").orElseThrow().vgpu(), Vgpu.now());
            Vgpu made = vgpu("made");
            lose(acts, connection -> {
                VgpuStore.update(connection, more, List.of());
                VgpuStore.delete(connection, "deleted");
                VgpuStore.insert(connection, made, List.of(GPU));
                TokenStore.insert(connection, token("made-token", "stays"));
                TokenStore.delete(connection, "stays-token");
                return null;
            });
            assertEquals(Set.of("changed", "made", "stays"), names(database),
                "the database must hold the unconfirmed change");
            Vgpu next = vgpu("next");
            TestBroker.done(acts.submit(() -> acts.write(Set.of(), connection -> {
                VgpuStore.insert(connection, next, List.of(GPU));
                return null;
            })));
            assertEquals(Set.of("changed", "deleted", "stays", "next"), names(database));
            Map<String, VgpuStore.Kept> kept = database.read(VgpuStore::all).stream()
                .collect(Collectors.toMap(k -> k.vgpu().name(), k -> k));
            assertEquals(vgpus.kept(), List.of(kept.get("changed"), kept.get("deleted"), kept.get("stays")));
            assertEquals(Set.of("changed-token", "deleted-token", "stays-token"),
                database.read(TokenStore::all).stream().map(Token::keyId).collect(Collectors.toSet()));
        }
    }

    @Test
    void shouldLeaveADatabaseAloneThatIsWhatWasAnswered() throws Exception {
        try (Database database = Database.open(TestBroker.config(folder, "normal", Map.of()).database(), folder);
            Acts acts = new Acts(Runnable::run, database, vgpus, tokens)) {
            lose(acts, connection -> null);
            assertEquals(true, TestBroker.done(acts.submit(() -> acts.write(Set.of(),
                c -> VgpuStore.markDone(c, "next")))));
            assertEquals(Set.of(), names(database));
        }
    }

    private static Set<String> names(Database database) throws SQLException {
        return database.read(VgpuStore::all).stream().map(kept -> kept.vgpu().name())
            .collect(Collectors.toCollection(TreeSet::new));
    }
}
