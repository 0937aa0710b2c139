package io.hawser.worker.calls;

import java.util.HashMap;
import java.util.Map;

/**
 * Which communicators of a session may belong together: those of the same id, of the same call, or of one split. Their
 * ranks are threads of the same guest process. Session thread.
 */
final class NcclPeers {
    private final Map<String, Group> byId = new HashMap<>();

    /** Communicators that may belong together. */
    static final class Group {
        private final String id; // empty for none
        private int members;

        private Group(String id) {
            this.id = id;
        }

        /** Adds a communicator. */
        void add() {
            members++;
        }

        /** Number of communicators. */
        int members() {
            return members;
        }
    }

    /**
     * The group of a new communicator.
     *
     * @param id of the communicator; empty if the same call makes all of its ranks.
     * @param first the group of the call's first communicator; null for that one itself.
     */
    Group of(String id, Group first) {
        if (id.isEmpty()) {
            return first != null ? first : new Group("");
        }
        return byId.computeIfAbsent(id, Group::new);
    }

    /** Removes a communicator from its group. */
    void remove(Group group) {
        if (--group.members == 0 && !group.id.isEmpty()) {
            byId.remove(group.id);
        }
    }
}
