package io.hawser.shm.control;

/**
 * The messages from a worker to the broker. A name is the value of the JSON field {@code type}. Names are
 * permanent, because the two processes can come from different builds.
 */
public enum WorkerMessageType {
    READY("ready"),
    JAILED("jailed"),
    STATS("stats"),
    LOST("lost"),
    ENDED("ended"),
    IMAGE("image"),
    STORED("stored"),
    WANT("want"),
    UNFIT("unfit"),
    SHARE("share"),
    UNSHARE("unshare"),
    FIND("find"),
    RELEASE("release"),
    SWAPPED_OUT("swappedout"),
    SWAPPED_IN("swappedin"),
    SWAP_WANTED("swapwanted"),
    SWAP_MOVED("swapmoved"),
    KEPT("kept"),
    SWAP_FROZEN("swapfrozen"),
    PROCESS_MOVED("processmoved"),
    CARRIED("carried"),
    MOVE_READY("moveready"),
    MOVED_IN("movedin");

    private final String wireName;

    WorkerMessageType(String wireName) {
        this.wireName = wireName;
    }

    /** The name in JSON. */
    public String wireName() {
        return wireName;
    }

    /** The type of this name; null when no type has it. */
    public static WorkerMessageType of(String wireName) {
        for (WorkerMessageType type : values()) {
            if (type.wireName.equals(wireName)) {
                return type;
            }
        }
        return null;
    }
}
