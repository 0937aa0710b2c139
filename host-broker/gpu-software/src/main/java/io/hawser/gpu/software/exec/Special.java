package io.hawser.gpu.software.exec;

/** Special registers. The translator finds a method by the register's name, with underscores in place of the points. */
public final class Special {
    private static final long WALL_OFFSET_NS = System.currentTimeMillis() * 1_000_000 - System.nanoTime();

    private Special() {
    }

    static int tid_x(CtaSlot c, int t) {
        return c.tidX[t];
    }

    static int tid_y(CtaSlot c, int t) {
        return c.tidY[t];
    }

    static int tid_z(CtaSlot c, int t) {
        return c.tidZ[t];
    }

    static int ntid_x(CtaSlot c, int t) {
        return c.launch.blockX;
    }

    static int ntid_y(CtaSlot c, int t) {
        return c.launch.blockY;
    }

    static int ntid_z(CtaSlot c, int t) {
        return c.launch.blockZ;
    }

    static int ctaid_x(CtaSlot c, int t) {
        return c.ctaX;
    }

    static int ctaid_y(CtaSlot c, int t) {
        return c.ctaY;
    }

    static int ctaid_z(CtaSlot c, int t) {
        return c.ctaZ;
    }

    static int nctaid_x(CtaSlot c, int t) {
        return c.launch.gridX;
    }

    static int nctaid_y(CtaSlot c, int t) {
        return c.launch.gridY;
    }

    static int nctaid_z(CtaSlot c, int t) {
        return c.launch.gridZ;
    }

    static int laneid(CtaSlot c, int t) {
        return t & 31;
    }

    static int warpid(CtaSlot c, int t) {
        return t >>> 5;
    }

    static int nwarpid(CtaSlot c, int t) {
        return c.threads + 31 >>> 5;
    }

    static int smid(CtaSlot c, int t) {
        return 0;
    }

    static int nsmid(CtaSlot c, int t) {
        return 1;
    }

    static int lanemask_eq(CtaSlot c, int t) {
        return 1 << (t & 31);
    }

    static int lanemask_lt(CtaSlot c, int t) {
        return (1 << (t & 31)) - 1;
    }

    static int lanemask_le(CtaSlot c, int t) {
        return lanemask_lt(c, t) | lanemask_eq(c, t);
    }

    static int lanemask_gt(CtaSlot c, int t) {
        return ~lanemask_le(c, t);
    }

    static int lanemask_ge(CtaSlot c, int t) {
        return ~lanemask_lt(c, t);
    }

    static int clock(CtaSlot c, int t) {
        return (int) System.nanoTime();
    }

    static int clock_hi(CtaSlot c, int t) {
        return (int) (System.nanoTime() >>> 32);
    }

    static long clock64(CtaSlot c, int t) {
        return System.nanoTime();
    }

    static long globaltimer(CtaSlot c, int t) {
        return wallNs();
    }

    static int globaltimer_lo(CtaSlot c, int t) {
        return (int) wallNs();
    }

    static int globaltimer_hi(CtaSlot c, int t) {
        return (int) (wallNs() >>> 32);
    }

    static int dynamic_smem_size(CtaSlot c, int t) {
        return c.launch.dynamicSharedBytes;
    }

    static int total_smem_size(CtaSlot c, int t) {
        return c.plan.sharedBytes() + c.launch.dynamicSharedBytes;
    }

    static int aggr_smem_size(CtaSlot c, int t) {
        return total_smem_size(c, t);
    }

    static long gridid(CtaSlot c, int t) {
        return c.launch.gridId;
    }

    static int clusterid_x(CtaSlot c, int t) {
        return c.ctaX;
    }

    static int clusterid_y(CtaSlot c, int t) {
        return c.ctaY;
    }

    static int clusterid_z(CtaSlot c, int t) {
        return c.ctaZ;
    }

    static int nclusterid_x(CtaSlot c, int t) {
        return c.launch.gridX;
    }

    static int nclusterid_y(CtaSlot c, int t) {
        return c.launch.gridY;
    }

    static int nclusterid_z(CtaSlot c, int t) {
        return c.launch.gridZ;
    }

    static int cluster_ctaid_x(CtaSlot c, int t) {
        return 0;
    }

    static int cluster_ctaid_y(CtaSlot c, int t) {
        return 0;
    }

    static int cluster_ctaid_z(CtaSlot c, int t) {
        return 0;
    }

    static int cluster_nctaid_x(CtaSlot c, int t) {
        return 1;
    }

    static int cluster_nctaid_y(CtaSlot c, int t) {
        return 1;
    }

    static int cluster_nctaid_z(CtaSlot c, int t) {
        return 1;
    }

    static int cluster_ctarank(CtaSlot c, int t) {
        return 0;
    }

    static int cluster_nctarank(CtaSlot c, int t) {
        return 1;
    }

    static int is_explicit_cluster(CtaSlot c, int t) {
        return 0;
    }

    private static long wallNs() {
        return WALL_OFFSET_NS + System.nanoTime();
    }

    /**
     * Environment registers of cooperative launches: 1 and 2 hold the upper and lower half of the workspace's address.
     */
    static int envreg(CtaSlot c, int number) {
        return number == 2 ? (int) c.launch.gridWorkspace : number == 1 ? (int) (c.launch.gridWorkspace >>> 32) : 0;
    }
}
