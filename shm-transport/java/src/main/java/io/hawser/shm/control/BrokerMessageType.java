package io.hawser.shm.control;

/**
 * The messages from the broker to a worker. A name is the value of the JSON field {@code type}. Names are
 * permanent, because the two processes can come from different builds.
 */
public enum BrokerMessageType {
    ASSIGN("assign"),
    LEDGER("ledger"),
    TURNS("turns"),
    TURN_BELL("turnbell"),
    DOORBELL("doorbell"),
    DESCRIPTORS("descriptors"),
    WATCHING("watching"),
    STORE("store"),
    IMAGE("image"),
    NO_IMAGE("noimage"),
    SHARED("shared"),
    UNSHARED("unshared"),
    FOUND("found"),
    NOT_FOUND("notfound"),
    KEEP("keep"),
    KEEP_FOR("keepfor"),
    KEEPER("keeper"),
    SWAP_OUT("swapout"),
    SWAP_IN("swapin"),
    SWAP_FREEZE("swapfreeze"),
    CHECKPOINT("checkpoint"),
    RESTORE("restore"),
    STRIPE("stripe"),
    MOVER("mover"),
    MOVE_SIDE("moveside"),
    MOVE_OUT("moveout"),
    MOVE_IN("movein"),
    MOVE_LINK("movelink"),
    MOVE_STREAM("movestream"),
    MOVE_END("moveend"),
    END("end");

    private final String wireName;

    BrokerMessageType(String wireName) {
        this.wireName = wireName;
    }

    /** The name in JSON. */
    public String wireName() {
        return wireName;
    }

    /** The type of this name; null when no type has it. */
    public static BrokerMessageType of(String wireName) {
        for (BrokerMessageType type : values()) {
            if (type.wireName.equals(wireName)) {
                return type;
            }
        }
        return null;
    }
}
