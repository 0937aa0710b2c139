package io.hawser.broker.config;

import io.hawser.broker.model.JailMode;
import io.quarkus.runtime.configuration.MemorySize;
import io.smallrye.config.ConfigMapping;
import io.smallrye.config.WithDefault;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;

/**
 * Settings of the broker, read once at start: {@code -Dhawser.listen.port=7654}, {@code HAWSER_LISTEN_PORT=7654}, or a
 * line of {@code config/application.properties} beside the place it is started from.
 */
@ConfigMapping(prefix = "hawser")
public interface BrokerConfig {

    /** The front door, where guests connect. */
    Listen listen();

    /** The REST interface and the page. */
    Http http();

    /** Certificate and key, for the REST interface and the page, and for guests. */
    Tls tls();

    /** Metrics for Prometheus. */
    Metrics metrics();

    /** The log of administrative acts. */
    Audit audit();

    /** An issuer of bearer tokens (OpenID Connect); none unless {@code hawser.oidc.issuer} is set. */
    Oidc oidc();

    /**
     * Folder of the lock, the tokens and {@code endpoints.json}; created with mode 0700 when it is missing. One broker
     * at a time uses it.
     */
    @WithDefault("${user.home}/.local/state/hawser")
    Path stateDir();

    /** What outlives the broker: vGPUs, tokens, the audit log. */
    Database database();

    /** Worker processes. */
    Worker worker();

    /** The GPU that workers open. */
    Gpu gpu();

    /** The tokens of vGPUs. */
    Tokens tokens();

    /** Limits and times of sessions. */
    Sessions sessions();

    /** Device code that is kept of one session for later ones of the same vGPU, which then need not send it. */
    Images images();

    /** NVIDIA's MPS. */
    Mps mps();

    /** How vGPUs that share a GPU take turns on it. */
    Turns turns();

    /** Those who watch: the page and {@code hawserctl top}. */
    Stream stream();

    /**
     * vGPUs by name that belong to the settings: made or changed at start, and by nobody else. {@code default} exists
     * from the first start without being named here.
     */
    Map<String, Vgpu> vgpus();

    /**
     * On which GPU a vGPU is placed that may have any: {@code least-loaded} (the least sum of compute shares, then the
     * least reserved memory), {@code packed} (the fullest where it fits) or {@code spread} (the fewest vGPUs).
     */
    @WithDefault("least-loaded")
    String placement();

    /**
     * How many times a GPU's memory may be reserved, 1.0 to 16.0; over 1.0 some of what was promised may not be there.
     */
    @WithDefault("1.0")
    double overcommit();

    /**
     * Shared memory that is served, by name; none unless it is named here or made by REST. One that cannot be served
     * keeps the broker from starting.
     */
    Map<String, Region> regions();

    /**
     * Folders below which REST may have the files of regions; stops an operator from having the broker make, format or
     * remove files elsewhere. Regions of the settings may be anywhere.
     */
    @WithDefault("/dev/shm")
    List<Path> regionFolders();

    /**
     * Folders below which REST may have doorbell sockets; stops an operator from having the broker make sockets
     * elsewhere. Default: {@code doorbells} in {@link #stateDir()}, made when it is missing.
     */
    Optional<List<Path>> doorbellFolders();

    /** The front door, where guests connect. */
    interface Listen {
        /** Address to listen on; {@code 0.0.0.0} for guests of other machines. */
        @WithDefault("127.0.0.1")
        String host();

        /** TCP port; 0 takes any, which {@code endpoints.json} then names. */
        @WithDefault("7654")
        int port();

        /** Whether guests may come without TLS; false needs {@link #tlsPort()}. */
        @WithDefault("true")
        boolean plain();

        /**
         * TCP port where guests come by TLS ({@code HAWSER_BROKER=tls://host:port}), with {@code hawser.tls.*}; none
         * unless it is set. 0 takes any.
         */
        Optional<Integer> tlsPort();

        /** Address of that port. Default: {@link #host()}. */
        Optional<String> tlsHost();

        /**
         * Connections that have not proved who they are, over all peers; stops a flood of connects from taking
         * descriptors.
         */
        @WithDefault("128")
        int maxHalfOpen();

        /** Connections and sessions of one peer address; stops one machine from taking every place. */
        @WithDefault("64")
        int maxPerPeer();

        /** Time for a whole handshake; stops a slow peer from holding a place. */
        @WithDefault("5s")
        Duration handshakeTimeout();
    }

    /** The REST interface and the page. */
    interface Http {
        /** Address to listen on. */
        @WithDefault("127.0.0.1")
        String host();

        /** TCP port; 0 takes any, which {@code endpoints.json} then names. */
        @WithDefault("7655")
        int port();

        /**
         * Whether GET is answered without the admin token to peers on the loopback interface. Off by default: it shows
         * every local user, and a proxy on this machine shows everyone, which programs run from where.
         */
        @WithDefault("false")
        boolean loopbackRead();

        /** Connections of all peers; stops a flood of connects from taking descriptors and the heap. */
        @WithDefault("256")
        int maxConnections();

        /**
         * Connections of one peer; stops one peer from taking every place. An IPv6 network of 64 bits is one peer. A
         * proxy before the broker needs as many as its clients together.
         */
        @WithDefault("64")
        int maxPerPeer();

        /**
         * Connections of {@link #maxConnections()} that no stranger gets: half for users of this machine, half for
         * peers that logged in of late. Stops many peers together from locking out administrators.
         */
        @WithDefault("64")
        int reservedConnections();

        /** Time after its last valid login in which a peer may have reserved places. */
        @WithDefault("1h")
        Duration knownPeerTime();

        /**
         * Time from a request's first byte until the request is there in full; the first request's time begins at
         * connect and includes the TLS handshake. Stops a slow peer from holding a place.
         */
        @WithDefault("10s")
        Duration requestTimeout();

        /** Bytes of the fields of a request's head; stops heads from filling the heap. */
        @WithDefault("20K")
        MemorySize maxHeadSize();

        /** Fields of a request's head; each takes much more of the heap than its bytes. */
        @WithDefault("100")
        int maxHeadFields();

        /** Requests of one connection without a whole answer; stops a peer from queueing requests without end. */
        @WithDefault("2")
        int maxPipelined();

        /**
         * Wrong passwords of one peer in a minute, and four times as many for one name from all peers; then further
         * attempts wait. Stops guessing. A peer from which the user logged in during the last day counts by itself.
         */
        @WithDefault("10")
        int maxFailedLogins();

        /** Time after which a login of the page that is not used is over. */
        @WithDefault("30m")
        Duration loginIdle();

        /** Time after which each login of the page is over. */
        @WithDefault("12h")
        Duration loginLife();
    }

    /** Certificate and key, for the REST interface and the page, and for guests. */
    interface Tls {
        /**
         * The certificate, and those between it and its authority, as PEM. With it the port of the REST interface
         * speaks TLS (1.3 and 1.2) and nothing else. Read again when it has changed.
         */
        Optional<Path> certificate();

        /** Its private key, PKCS #8 as PEM, not encrypted. */
        Optional<Path> key();

        /** How often is looked whether the files have changed. */
        @WithDefault("30s")
        Duration reloadPeriod();
    }

    /** The log of administrative acts. */
    interface Audit {
        /**
         * Acts that are kept; the oldest go. Refused acts, logins, and requests without an identity have a quarter of
         * that each.
         */
        @WithDefault("100000")
        long maxEntries();
    }

    /** Metrics for Prometheus. */
    interface Metrics {
        /** Whether {@code /q/metrics} is answered to everyone; else to whoever may read. */
        @WithDefault("false")
        boolean open();
    }

    /** An issuer of bearer tokens (OpenID Connect); none unless {@code hawser.oidc.issuer} is set. */
    interface Oidc {
        /** Its URL, under which {@code .well-known/openid-configuration} names its keys. */
        Optional<String> issuer();

        /** What tokens must be made for ({@code aud}). */
        @WithDefault("hawser")
        String audience();

        /** Where a token has its roles, as a path with slashes: {@code realm_access/roles}. */
        @WithDefault("roles")
        String rolesClaim();

        /** The role of a token that makes a viewer. */
        @WithDefault("hawser-viewer")
        String viewerRole();

        /** The role of a token that makes an operator. */
        @WithDefault("hawser-operator")
        String operatorRole();

        /** The role of a token that makes an admin. */
        @WithDefault("hawser-admin")
        String adminRole();
    }

    /** What outlives the broker. */
    interface Database {
        /**
         * {@code jdbc:postgresql://host:5432/name}; one broker has one database. Default: H2 in
         * {@code <state-dir>/broker.mv.db}.
         */
        Optional<String> url();

        /** Default: {@code hawser} for PostgreSQL. */
        Optional<String> username();

        /** Better in the environment, {@code HAWSER_DATABASE_PASSWORD}, than among the arguments, which all can see. */
        Optional<String> password();
    }

    /** Worker processes. */
    interface Worker {
        /**
         * Command line of a worker, split at spaces; double quotes keep a part together. Default: the Java that runs
         * the broker, {@code hawser.worker.flags}, the jars of {@code hawser.worker.dir} and the worker's main class.
         */
        Optional<String> command();

        /** Folder of the worker's jars. */
        @WithDefault("worker")
        Path dir();

        /** JVM flags of the default command, split like it. */
        @WithDefault("--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -XX:+UseSerialGC "
            + "-XX:-DontCompileHugeMethods -XX:+ExitOnOutOfMemoryError -Xss2m -Xms64m -Xmx1g "
            + "-XX:MaxDirectMemorySize=256m -XX:-UsePerfData "
            + "-XX:+DisplayVMOutputToStderr -Xlog:disable -Xlog:all=warning:stderr "
            + "-XX:+DisableAttachMechanism -XX:+ErrorFileToStderr -XX:-CreateCoredumpOnCrash")
        String flags();

        /** Names of the environment variables that a worker inherits. {@link Mps} adds CUDA_MPS_PIPE_DIRECTORY. */
        @WithDefault("PATH,LANG,LC_ALL,TZ,TMPDIR,LD_LIBRARY_PATH,CUDA_VISIBLE_DEVICES")
        List<String> environment();

        /**
         * Workers kept ready, for each set of GPUs that some vGPU has, and under MPS for each compute share there, of
         * which the four that most vGPUs have; 0 starts each when it is asked for.
         */
        @WithDefault("2")
        int poolSize();

        /**
         * Whether workers start with the JVM's cache of classes that lies beside their jars: such a start takes two
         * thirds of the processor's time. The cache serves only the default command on the runtime of the same archive
         * or build.
         */
        @WithDefault("true")
        boolean startCache();

        /**
         * Whether workers are jailed before they meet their guests: {@code auto} takes what the machine has, and the
         * log says which parts; {@code strict} does not start without all of them; {@code off} is for looking for
         * faults.
         */
        @WithDefault("auto")
        JailMode jail();

        /**
         * The first of 65,536 users of the system for workers, one each, when the broker runs as root; 0 for none.
         * Nobody else may have them.
         */
        @WithDefault("1900000000")
        int firstUid();

        /**
         * Memory of the machine that a worker may have at most, where the machine has control groups for the broker
         * ({@code jail} of REST says so). With the software GPU its vGPU's device memory is added, and with both the
         * shared memory of its guest. Default: 2 GiB with the software GPU, else half of the machine's memory. Who
         * wants more is ended by the kernel, and its session with it.
         */
        Optional<MemorySize> memoryMax();

        /** Time from the start of a worker to its {@code ready}. */
        @WithDefault("60s")
        Duration startTimeout();

        /** Wait after a failed start; doubles with each further failure up to {@link #maxBackOff()}. */
        @WithDefault("250ms")
        Duration minBackOff();

        /** Longest wait between failing starts. */
        @WithDefault("30s")
        Duration maxBackOff();
    }

    /** The GPU that workers open. */
    interface Gpu {
        /** {@code auto} (NVIDIA where there is one, else software), {@code nvidia} or {@code software}. */
        @WithDefault("auto")
        String backend();

        /** The software GPU. */
        Software software();

        /** The software GPU. */
        interface Software {
            /** How many GPUs it is, all alike: for tests of programs that use several. They share the processors. */
            @WithDefault("1")
            int devices();
        }
    }

    /** The tokens of vGPUs. */
    interface Tokens {
        /**
         * Whether guest packages before version 2 of the handshake may use tokens that are older than it. The database
         * keeps a digest of each such token, and the digest opens the vGPU. {@code false} drops all digests, for good.
         */
        @WithDefault("true")
        boolean oldProofs();
    }

    /** Limits and times of sessions. */
    interface Sessions {
        /** Sessions at a time. */
        @WithDefault("32")
        int max();

        /**
         * Starts of one vGPU that may wait for a worker, 1 or more; stops one vGPU from filling the broker's sessions
         * with starts.
         */
        @WithDefault("32")
        int maxWaiting();

        /** Time that a worker has to end after it was told to; then it is killed. */
        @WithDefault("2s")
        Duration endTimeout();
    }

    /** Device code that is kept of one session for later ones of the same vGPU. */
    interface Images {
        /** Memory for one vGPU: {@code 256M}; 0 keeps nothing. What was used longest ago goes first. */
        @WithDefault("256M")
        MemorySize maxSize();

        /** Images of one vGPU; each is an open descriptor of the broker. */
        @WithDefault("128")
        int maxCount();

        /** Memory for all vGPUs together; the vGPU that keeps most gives up images first. */
        @WithDefault("1G")
        MemorySize maxTotalSize();

        /** Images of all vGPUs together. */
        @WithDefault("1024")
        int maxTotalCount();
    }

    /** NVIDIA's MPS. */
    interface Mps {
        /** Used when neither the setting nor CUDA_MPS_PIPE_DIRECTORY in the broker's environment names a folder. */
        String DEFAULT_PIPE_DIRECTORY = "/run/nvidia-mps";

        /**
         * Folder of the pipes of MPS's control daemon. Only root or the broker's user may be able to make or change
         * it: NVIDIA's driver in the workers trusts each daemon that listens there.
         */
        Optional<Path> pipeDirectory();
    }

    /** How vGPUs that share a GPU take turns on it. */
    interface Turns {
        /**
         * {@code on}, {@code off} (each launches when it likes; the driver slices time between processes), or
         * {@code auto}: on, except for equal shares on NVIDIA GPUs, which the driver treats alike, and except where
         * NVIDIA's MPS runs, which lets processes use the GPU together.
         */
        @WithDefault("auto")
        String mode();

        /** Length of a turn while others wait, 100us to 1s. */
        @WithDefault("4ms")
        Duration quantum();

        /**
         * How long others wait for work that outlasts its turn (a kernel cannot be taken back) before they launch
         * beside it; 0s to 60s. What it has too much is charged.
         */
        @WithDefault("20ms")
        Duration grace();

        /**
         * How long the turn, while it lasts, stays with a vGPU whose work is done and that mostly comes back as soon;
         * 0s for never. About what it costs the GPU to have a turn passed and back.
         */
        @WithDefault("0.0001s")
        Duration linger();
    }

    /** Those who watch: the page and {@code hawserctl top}. */
    interface Stream {
        /** At a time; each costs the broker what its network does not take at once. */
        @WithDefault("64")
        int maxClients();
    }

    /** A named share of GPUs. */
    interface Vgpu {
        /**
         * Device memory on each of its GPUs, for all its sessions together, and reserved there: {@code 16G}; 0 is best
         * effort: what others have not reserved, and nothing is reserved for it.
         */
        @WithDefault("0")
        MemorySize memoryBytes();

        /** 1 to 100: its weight among the vGPUs that want a GPU at the same time. */
        @WithDefault("100")
        int computeShare();

        /** {@code shared}, or {@code exclusive}: no other vGPU is placed on its GPUs. */
        @WithDefault("shared")
        String mode();

        /**
         * Its GPUs: {@code any} (one, chosen when it is made, see {@link BrokerConfig#placement()}), {@code all}, or a
         * list with commas of numbers from 0 and of UUIDs or their beginnings ({@code GPU-1b2c3d4e}), in the order in
         * which guests see them.
         */
        @WithDefault("any")
        String gpus();

        /** By which its guests may come. */
        @WithDefault("tcp,shm")
        List<String> carriers();

        /** Sessions of this vGPU at a time; 0 is as many as {@code hawser.sessions.max}. */
        @WithDefault("0")
        int maxSessions();
    }

    /**
     * Shared memory of one vGPU: {@code -Dhawser.regions.NAME.path=/dev/shm/NAME -Dhawser.regions.NAME.size=64M}.
     * Whoever has it has the vGPU: there is no token.
     */
    interface Region {
        /**
         * A file in shared memory (/dev/shm, hugetlbfs), which guests on this machine and QEMU's {@code ivshmem-plain}
         * map; or the {@code resource2} of an ivshmem device where the broker itself runs in a virtual machine. A file
         * that is missing is made with mode 0600, and removed at the end. An existing file must belong to the broker's
         * user or root, have one name, and give others no right. Not together with
         * {@link #doorbellSocket()}.
         */
        Optional<Path> path();

        /**
         * Its length: {@code 64M}, {@code 1G}. Default: the file's, which must be at least as long. A new file and a
         * doorbell socket need it; for ivshmem it is a power of two.
         */
        Optional<MemorySize> size();

        /** The share that having the region opens. */
        @WithDefault("default")
        String vgpu();

        /** Guest processes that can use it at a time, 1 to 64. */
        @WithDefault("16")
        int slots();

        /**
         * How long a guest process in a virtual machine, which only its own counting shows to be alive, may stand still
         * before its session ends: a paused machine loses its sessions after so long.
         */
        @WithDefault("30s")
        Duration guestTimeout();

        /**
         * Unix socket where the broker is itself the ivshmem server, for QEMU's {@code ivshmem-doorbell}: the memory is
         * the broker's, nobody can cut it, and guests ring instead of being polled. Made with mode 0600.
         */
        Optional<Path> doorbellSocket();

        /**
         * Doorbells of that server: one of the broker and one of each slot. QEMU's device must have at least as many
         * ({@code vectors=17}). Default: 1 + slots.
         */
        Optional<Integer> vectors();
    }
}
