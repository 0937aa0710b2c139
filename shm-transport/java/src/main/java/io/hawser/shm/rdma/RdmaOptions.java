package io.hawser.shm.rdma;

/**
 * How an end of RDMA finds its device and uses the fabric.
 *
 * @param device the device's name; empty for the first with an active port.
 * @param port number of the port, from 1; 0 for the first active one.
 * @param gidIndex index of the address in the port's table, 0..{@value #MAX_GID_INDEX}; -1 to find it.
 * @param partition index in the port's table of partition keys, 0..{@value #MAX_PARTITION}.
 * @param serviceLevel of InfiniBand, 0..{@value #MAX_SERVICE_LEVEL}.
 * @param trafficClass in the packets' global header, 0..{@value #MAX_TRAFFIC_CLASS}.
 * @param retryMs how long a link may be down before its session is lost; 0 for the library's default.
 */
public record RdmaOptions(String device, int port, int gidIndex, int partition, int serviceLevel, int trafficClass,
    int retryMs) {
    /** The highest number of a port. */
    public static final int MAX_PORT = 255;
    /** The highest index of an address: queue pairs take eight bits. */
    public static final int MAX_GID_INDEX = 255; // infiniband/verbs.h, ibv_global_route.sgid_index
    /** The highest index of a partition key. */
    public static final int MAX_PARTITION = 65_535;
    /** The highest service level. */
    public static final int MAX_SERVICE_LEVEL = 15;
    /** The highest traffic class. */
    public static final int MAX_TRAFFIC_CLASS = 255;
    /** The longest time for a link to be down: ten minutes. */
    public static final int MAX_RETRY_MS = 600_000;
    /** As {@code IBV_SYSFS_NAME_MAX} of libibverbs. */
    private static final int MAX_NAME_CHARS = 63;
    private static final String NAME = "[A-Za-z0-9_.:-]{0," + MAX_NAME_CHARS + "}";
    private static final int FIELDS = 7;

    /** Everything is found by itself. */
    public static final RdmaOptions DEFAULT = new RdmaOptions("", 0, -1, 0, 0, 0, 0);

    /** Checks the ranges. */
    public RdmaOptions {
        if (!device.matches(NAME)) {
            throw new IllegalArgumentException("the name of an RDMA device must have at most " + MAX_NAME_CHARS
                + " letters and digits: device=" + device);
        }
        check("port", port, 0, MAX_PORT);
        check("gid-index", gidIndex, -1, MAX_GID_INDEX);
        check("partition", partition, 0, MAX_PARTITION);
        check("service-level", serviceLevel, 0, MAX_SERVICE_LEVEL);
        check("traffic-class", trafficClass, 0, MAX_TRAFFIC_CLASS);
        check("retry", retryMs, 0, MAX_RETRY_MS);
    }

    private static void check(String name, int value, int lowest, int highest) {
        if (value < lowest || value > highest) {
            throw new IllegalArgumentException("an option of RDMA must lie within its range: " + name + "=" + value
                + " lowest=" + lowest + " highest=" + highest);
        }
    }

    /** The options as one argument of a command line. */
    public String text() {
        return device + "," + port + "," + gidIndex + "," + partition + "," + serviceLevel + "," + trafficClass + ","
            + retryMs;
    }

    /**
     * Reads the argument that {@link #text} has written.
     *
     * @throws IllegalArgumentException if it has another form, or a number outside its range.
     */
    public static RdmaOptions parse(String text) {
        String[] parts = text.split(",", -1);
        if (parts.length != FIELDS) {
            throw new IllegalArgumentException("options of RDMA must be device,port,gid-index,partition,service-level,"
                + "traffic-class,retry-ms: " + text);
        }
        return new RdmaOptions(parts[0], number(parts[1]), number(parts[2]), number(parts[3]), number(parts[4]),
            number(parts[5]), number(parts[6]));
    }

    private static int number(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException e) {
            throw new IllegalArgumentException("an option of RDMA must be a number: " + text, e);
        }
    }
}
