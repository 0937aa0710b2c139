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
 * Settings of the broker. The broker reads them once, at start: from {@code -Dhawser.listen.port=7654}, from
 * {@code HAWSER_LISTEN_PORT=7654}, or from a line of {@code config/application.properties} in the folder where it
 * starts. The build makes the reference page from these comments, with the sentences "Range:" and "Default:" as fields.
 */
@ConfigMapping(prefix = "hawser")
public interface BrokerConfig {
    Listen listen();
    Http http();
    Tls tls();
    Metrics metrics();
    Audit audit();
    Oidc oidc();
    /**
     * Folder of the lock file, the tokens, the default database and {@code endpoints.json}. The broker creates a
     * missing folder with mode 0700. Only one broker at a time can use the folder.
     */
    @WithDefault("${user.home}/.local/state/hawser")
    Path stateDir();
    Database database();

    /** The broker as a member of a pool. */
    MemberConfig broker();
    Worker worker();
    PoolConfig pool();
    LibrariesConfig libraries();
    Gpu gpu();
    Tokens tokens();
    Sessions sessions();
    Images images();
    ComputeCacheConfig computeCache();
    Mps mps();
    Turns turns();

    /** Swapping of the vGPUs' memory. */
    SwapConfig swap();

    /** Moves of running sessions to another GPU. */
    MoveConfig move();

    /** Sessions over RDMA. */
    RdmaConfig rdma();
    Stream stream();
    /**
     * vGPUs that the settings define, by name. The broker creates or changes them at start, and rejects changes by
     * REST. The vGPU {@code default} exists from the first start without a setting.
     */
    Map<String, VgpuConfig> vgpus();

    /**
     * Rule that chooses the GPU of a vGPU with {@code gpus=any}. {@code least-loaded} chooses the GPU with the least
     * sum of compute shares, then with the least reserved memory. {@code packed} chooses the fullest GPU on which the
     * vGPU fits, {@code spread} the GPU with the fewest vGPUs. Range: {@code least-loaded}, {@code packed},
     * {@code spread}.
     */
    @WithDefault("least-loaded")
    String placement();

    /**
     * Limit of the memory that the vGPUs of a GPU together reserve, as a multiple of the GPU's memory. Only swappable
     * vGPUs can exceed the memory. The other vGPUs, the workers' contexts and the largest swappable vGPU must fit into
     * it. Range: 1.0 to 16.0.
     */
    @WithDefault("1.0")
    double overcommit();

    /**
     * Shared memory that the broker serves, by the region's name. REST can add regions. The broker does not start when
     * it cannot serve a region of the settings.
     */
    Map<String, Region> regions();

    /**
     * Folders below which REST may create region files. The limit stops an operator from letting the broker create,
     * format or remove files elsewhere. Regions of the settings may lie anywhere.
     */
    @WithDefault("/dev/shm")
    List<Path> regionFolders();

    /**
     * Folders below which REST may create doorbell sockets. The limit stops an operator from letting the broker create
     * sockets elsewhere. Default: {@code doorbells} in {@link #stateDir()}, which the broker creates.
     */
    Optional<List<Path>> doorbellFolders();

    /** The front door, where guests connect. */
    interface Listen {
        /** Address of the port for guests; {@code 0.0.0.0} admits guests of other machines. */
        @WithDefault("127.0.0.1")
        String host();

        /**
         * TCP port for guests. With 0 the broker takes any free port and writes it to {@code endpoints.json}. Range: 0
         * to 65535.
         */
        @WithDefault("7654")
        int port();

        /** Whether the broker admits guests without TLS. {@code false} requires {@link #tlsPort()}. */
        @WithDefault("true")
        boolean plain();

        /**
         * TCP port for guests by TLS ({@code HAWSER_BROKER=tls://host:port}). The port requires
         * {@link Tls#certificate()} and {@link Tls#key()}. With 0 the broker takes any free port. Range: 0 to 65535.
         * Default: no TLS port.
         */
        Optional<Integer> tlsPort();

        /** Address of the TLS port. Default: {@link #host()}. */
        Optional<String> tlsHost();

        /**
         * Connections of all peers that have not yet proved their token. The limit stops a flood of connects from
         * taking all descriptors. Range: 1 or more.
         */
        @WithDefault("128")
        int maxHalfOpen();

        /**
         * Connections and sessions of one peer address. The limit stops one machine from taking every place. The
         * connections that share a session's long copies count only until they have joined it. Range: 1 or more.
         */
        @WithDefault("64")
        int maxPerPeer();

        /** Time for a whole handshake. The limit stops a slow peer from holding a place. */
        @WithDefault("5s")
        Duration handshakeTimeout();
    }

    /** The REST interface and the page. */
    interface Http {
        /** Address of the REST interface and the page. */
        @WithDefault("127.0.0.1")
        String host();

        /**
         * TCP port of the REST interface and the page. With 0 the broker takes any free port and writes it to
         * {@code endpoints.json}. Range: 0 to 65535.
         */
        @WithDefault("7655")
        int port();

        /**
         * Whether peers on the loopback interface have the role viewer without an identity. {@code true} lets every
         * local user see which programs run from where. A proxy on the same machine then shows the same to its clients.
         */
        @WithDefault("false")
        boolean loopbackRead();

        /**
         * Connections of all peers. The limit stops a flood of connects from taking descriptors and the heap. Range:
         * above {@link #reservedConnections()}.
         */
        @WithDefault("256")
        int maxConnections();

        /**
         * Connections of one peer. The limit stops one peer from taking every place. A peer is an IPv4 address, an IPv6
         * network of 64 bits, or on the loopback interface a user of the machine. A proxy before the broker is one
         * peer: it needs as many connections as its clients together. Range: 1 or more.
         */
        @WithDefault("64")
        int maxPerPeer();

        /**
         * Connections of {@link #maxConnections()} that strangers cannot take. One half is for users of the broker's
         * machine. The other half is for root, the broker's user, and peers with a valid login within
         * {@link #knownPeerTime()}. The reserve stops many peers together from locking out administrators. Range: 0 to
         * {@link #maxConnections()} - 1.
         */
        @WithDefault("64")
        int reservedConnections();

        /** Time after its last valid login in which a peer may take reserved connections. */
        @WithDefault("1h")
        Duration knownPeerTime();

        /**
         * Time from a request's first byte to its last. For a connection's first request the time begins at the connect
         * and includes the TLS handshake. The limit stops a slow peer from holding a place. Range: 1 ms or more.
         */
        @WithDefault("10s")
        Duration requestTimeout();

        /** Length of a request's head. The limit stops heads from filling the heap. Range: 1 byte to 2 GiB - 1. */
        @WithDefault("20K")
        MemorySize maxHeadSize();

        /** Fields of a request's head. Each field takes much more of the heap than its bytes. Range: 1 or more. */
        @WithDefault("100")
        int maxHeadFields();

        /**
         * Requests of one connection without a whole answer. The limit stops a peer from queueing requests without end.
         * Range: 1 or more.
         */
        @WithDefault("2")
        int maxPipelined();

        /**
         * Wrong passwords of one peer in a minute; for one name from all peers the limit is four times as high. Further
         * attempts wait, which stops guessing. A peer from which the user logged in during the last day has a count of
         * its own. Range: 1 or more.
         */
        @WithDefault("10")
        int maxFailedLogins();

        /** Time without a request after which a login of the page ends. */
        @WithDefault("30m")
        Duration loginIdle();

        /** Time after which every login of the page ends. */
        @WithDefault("12h")
        Duration loginLife();
    }

    /** Certificate and key of the REST interface, the page and the guests' TLS port. */
    interface Tls {
        /**
         * PEM file of the certificate and of the certificates between it and its authority. With a certificate the REST
         * port speaks only TLS 1.3 and 1.2. The broker reads a changed file again without a restart. Default: no TLS.
         */
        Optional<Path> certificate();

        /**
         * PEM file of the certificate's private key: PKCS #8, not encrypted. The broker reads a changed file again
         * without a restart. Default: no TLS.
         */
        Optional<Path> key();

        /**
         * PEM file of the authorities that sign the certificates of the pool's other brokers, to which sessions move.
         * Default: the authorities of the machine.
         */
        Optional<Path> authorities();

        /** How often the broker checks the certificate and the key for changes. */
        @WithDefault("30s")
        Duration reloadPeriod();
    }

    /** The log of administrative acts. */
    interface Audit {
        /**
         * Entries of successful acts that the log keeps; the oldest entries go first. Refused acts, logins, and
         * requests without an identity each have a quarter of that number. Range: 1 or more.
         */
        @WithDefault("100000")
        long maxEntries();
    }

    /** Metrics for Prometheus. */
    interface Metrics {
        /** Whether {@code /q/metrics} answers everyone. With {@code false} it requires the role viewer. */
        @WithDefault("false")
        boolean open();
    }

    /** The issuer of bearer tokens (OpenID Connect). */
    interface Oidc {
        /**
         * URL of the issuer; {@code .well-known/openid-configuration} below it names its keys. Default: no issuer, and
         * the other settings of {@code hawser.oidc} have no effect.
         */
        Optional<String> issuer();

        /** Audience ({@code aud}) that a token must name. */
        @WithDefault("hawser")
        String audience();

        /**
         * Claim of a token that lists its roles; slashes separate the parts of a path, as in
         * {@code realm_access/roles}.
         */
        @WithDefault("roles")
        String rolesClaim();

        /** Role of a token that grants the role viewer. */
        @WithDefault("hawser-viewer")
        String viewerRole();

        /** Role of a token that grants the role operator. */
        @WithDefault("hawser-operator")
        String operatorRole();

        /** Role of a token that grants the role admin. */
        @WithDefault("hawser-admin")
        String adminRole();
    }

    /** The database of vGPUs, tokens and the audit log. */
    interface Database {
        /**
         * JDBC URL of a PostgreSQL database, {@code jdbc:postgresql://host:5432/name}. Brokers with the same database
         * form a pool. Default: H2 in {@code <state-dir>/broker.mv.db}.
         */
        Optional<String> url();

        /** User of the database. Default: {@code hawser} for PostgreSQL. */
        Optional<String> username();

        /**
         * Password of that user. Set it in the environment as {@code HAWSER_DATABASE_PASSWORD}: every user of the
         * machine can read a process's arguments. Default: no password.
         */
        Optional<String> password();
    }

    /** Worker processes. */
    interface Worker {
        /**
         * Command line of a worker. Spaces separate its parts; double quotes keep a part together. Default: the Java
         * that runs the broker, {@link #flags()}, the jars of {@link #dir()} and the worker's main class.
         */
        Optional<String> command();

        /** Folder of the worker's jars. The launcher {@code hawser-broker} sets it to the worker beside the broker. */
        @WithDefault("worker")
        Path dir();

        /** JVM flags of the default {@link #command()}, separated by spaces. */
        @WithDefault("--enable-native-access=ALL-UNNAMED --sun-misc-unsafe-memory-access=allow -XX:+UseSerialGC "
            + "-XX:-DontCompileHugeMethods -XX:+ExitOnOutOfMemoryError -Xss2m -Xms64m -Xmx1g "
            + "-XX:MaxDirectMemorySize=256m -XX:-UsePerfData "
            + "-XX:+DisplayVMOutputToStderr -Xlog:disable -Xlog:all=warning:stderr "
            + "-XX:+DisableAttachMechanism -XX:+ErrorFileToStderr -XX:-CreateCoredumpOnCrash")
        String flags();

        /**
         * Environment variables that a worker inherits. A worker gets no other variable of the broker, except
         * {@code CUDA_MPS_PIPE_DIRECTORY} with the folder of MPS.
         */
        @WithDefault("PATH,LANG,LC_ALL,TZ,TMPDIR,LD_LIBRARY_PATH,CUDA_VISIBLE_DEVICES")
        List<String> environment();

        /**
         * Workers that the broker keeps ready without demand, for each set of GPUs of some vGPU. Under MPS it keeps as
         * many for each of a set's four most frequent compute shares. A ready worker holds a context, about 0.5 GiB on
         * an NVIDIA GPU. With 0 the broker starts each worker when a guest needs it. Range: 0 or more.
         */
        @WithDefault("2")
        int poolSize();

        /**
         * Whether workers start with the JVM's cache of classes that the build puts beside their jars. The cache saves
         * a third of a start's processor time. It serves only the default {@link #command()} on the Java runtime of the
         * same archive or build.
         */
        @WithDefault("true")
        boolean startCache();

        /**
         * Jail of a worker before it gets its guest. {@code auto} applies the parts that the machine offers, and the
         * broker logs which. {@code strict} stops the broker's start when a part is missing. {@code off} is for
         * debugging. Range: {@code auto}, {@code strict}, {@code off}.
         */
        @WithDefault("auto")
        JailMode jail();

        /**
         * First of 65,536 system user ids for workers, one for each worker. It applies when the broker runs as root.
         * Nothing else may use these ids. With 0 workers run as the broker's user. Range: 0 or more.
         */
        @WithDefault("1900000000")
        int firstUid();

        /**
         * Memory of the machine that a worker may use, without its guest's shared memory. With the software GPU the
         * limit does not include the vGPU's device memory. It applies where the broker can create control groups
         * (cgroup v2); the field {@code jail} of REST names the parts in force. The kernel ends a worker that exceeds
         * it, and so its session. Default: 2 GiB with the software GPU, else half of the machine's memory.
         */
        Optional<MemorySize> memoryMax();

        /** Time from the start of a worker to its message {@code ready}. */
        @WithDefault("60s")
        Duration startTimeout();

        /** Pause after a failed start of a worker. Each further failure doubles it, up to {@link #maxBackOff()}. */
        @WithDefault("250ms")
        Duration minBackOff();

        /** Longest pause between failed starts of workers. */
        @WithDefault("30s")
        Duration maxBackOff();
    }

    /** The GPU that workers open. */
    interface Gpu {
        /**
         * Backend of the workers. {@code auto} chooses NVIDIA's driver where the machine has one, else the software
         * GPU. Range: {@code auto}, {@code nvidia}, {@code software}.
         */
        @WithDefault("auto")
        String backend();

        Software software();

        /** The software GPU. */
        interface Software {
            /**
             * Number of equal GPUs of the software GPU, for tests of programs with several GPUs. They share the
             * machine's processors. Range: 1 to 64.
             */
            @WithDefault("1")
            int devices();
        }
    }

    /** The tokens of vGPUs. */
    interface Tokens {
        /**
         * Whether guest packages before version 2 of the handshake may use tokens that were made before that version.
         * The database keeps a digest of each such token, and the digest opens the vGPU. {@code false} deletes all
         * digests; a later {@code true} does not restore them.
         */
        @WithDefault("true")
        boolean oldProofs();
    }

    /** Limits and times of sessions. */
    interface Sessions {
        /** Sessions at a time. Range: 1 or more. */
        @WithDefault("32")
        int max();

        /**
         * Starts of one vGPU that may wait for a worker; the broker rejects more with the reason. The limit stops one
         * vGPU from filling the broker's sessions with starts. Range: 1 or more.
         */
        @WithDefault("32")
        int maxWaiting();

        /** Time that a worker has to end its session. After it the broker kills the worker. */
        @WithDefault("2s")
        Duration endTimeout();
    }

    /** Device code that the broker keeps for later sessions of the same vGPU. */
    interface Images {
        /**
         * Memory for the images of one vGPU; the least recently used images go first. With 0 the broker keeps nothing.
         * Range: 0 or more.
         */
        @WithDefault("256M")
        MemorySize maxSize();

        /** Images of one vGPU. Each image is an open descriptor of the broker. Range: 0 or more. */
        @WithDefault("128")
        int maxCount();

        /**
         * Memory for the images of all vGPUs. The vGPU with the most kept memory gives up images first. Range: 0 or
         * more.
         */
        @WithDefault("1G")
        MemorySize maxTotalSize();

        /** Images of all vGPUs. Range: 0 or more. */
        @WithDefault("1024")
        int maxTotalCount();
    }

    /** NVIDIA's MPS. */
    interface Mps {
        /**
         * Folder of the pipes of MPS's control daemon. Only root or the broker's user may be able to make or change
         * the folder, because NVIDIA's driver in the workers trusts each daemon that listens there. Default:
         * {@code CUDA_MPS_PIPE_DIRECTORY} in the broker's environment, else {@code /run/nvidia-mps}.
         */
        Optional<Path> pipeDirectory();
    }

    /** Turns of vGPUs that share a GPU. */
    interface Turns {
        /**
         * Whether vGPUs that share a GPU take turns on it. With {@code off} each vGPU launches at any time, and the
         * driver slices time between processes. {@code auto} is {@code on}, except where NVIDIA's MPS runs, and except
         * for equal shares on NVIDIA GPUs: MPS lets processes use the GPU together, and the driver treats equal
         * processes alike. Range: {@code auto}, {@code on}, {@code off}.
         */
        @WithDefault("auto")
        String mode();

        /** Length of a turn while other vGPUs wait. Range: above 0. */
        @WithDefault("4ms")
        Duration quantum();

        /**
         * Time that other vGPUs wait for a kernel that outlasts its turn, before they launch beside it. A running
         * kernel cannot be interrupted; its vGPU is charged for the excess. Range: 0 or more.
         */
        @WithDefault("20ms")
        Duration grace();

        /**
         * How long an idle vGPU keeps its turn, in case it issues more work at once. It applies to vGPUs that mostly do
         * so, and never beyond the turn's end. A good value is the GPU time that two changes of turn cost. With 0 an
         * idle vGPU gives up its turn at once. Range: 0 or more.
         */
        @WithDefault("0.0001s")
        Duration linger();

        /**
         * File for a recording of the scheduler's decisions, which {@code appliance/simulate} replays. The broker
         * replaces an earlier file when it starts. The file holds names of vGPUs and GPUs, times, states of workers and
         * permits. Default: no recording.
         */
        Optional<Path> record();

        /** Limit of the size of the recording, which ends there. Range: 0 or more. */
        @WithDefault("64M")
        MemorySize recordMaxSize();
    }

    /** Clients of the live stream. */
    interface Stream {
        /**
         * Pages and {@code hawserctl top} that watch at a time. A slow client makes the broker buffer its data. Range:
         * 0 or more.
         */
        @WithDefault("64")
        int maxClients();
    }

    /**
     * Shared memory of one vGPU, such as
     * {@code -Dhawser.regions.NAME.path=/dev/shm/NAME -Dhawser.regions.NAME.size=64M}. A guest that can open the region
     * can use the vGPU without a token. Each region needs either {@code path} or {@code doorbell-socket}.
     */
    interface Region {
        /**
         * File in shared memory (/dev/shm, hugetlbfs) that guests on the same machine and QEMU's {@code ivshmem-plain}
         * map. Where the broker runs in a virtual machine: the {@code resource2} of an ivshmem device, or
         * {@code ivshmem:TAG} for the device that carries the tag. The broker creates a missing file with mode 0600 and
         * removes it at its end. An existing file must belong to the broker's user or root, have one name, and grant
         * other users no right. Default: none.
         */
        Optional<Path> path();

        /**
         * Length of the region, such as {@code 64M} or {@code 1G}. A new file and a doorbell socket need it. For
         * ivshmem it must be a power of two. Range: up to the length of an existing file. Default: the length of the
         * file.
         */
        Optional<MemorySize> size();

        /** vGPU of the region. */
        @WithDefault("default")
        String vgpu();

        /** Guest processes that can use the region at a time. Range: 1 to 64. */
        @WithDefault("16")
        int slots();

        /**
         * Time without a beat after which the session of a process in a virtual machine ends. The beat is a counter in
         * the region, and the broker's only sign of life of such a process. A machine that is paused for longer loses
         * its sessions. Range: 2 s or more.
         */
        @WithDefault("30s")
        Duration guestTimeout();

        /**
         * Unix socket on which the broker is the ivshmem server of QEMU's {@code ivshmem-doorbell}. The memory is then
         * the broker's: no other process can truncate it. Guests ring a doorbell, so the broker need not poll. The
         * broker creates the socket with mode 0600. Range: an absolute path of at most 107 bytes. Default: none.
         */
        Optional<Path> doorbellSocket();

        /**
         * Doorbells of that server: one for the broker and one for each slot. QEMU's device must have at least as many
         * ({@code vectors=17}). Range: 1 to 1 + {@link #slots()}. Default: 1 + {@link #slots()}.
         */
        Optional<Integer> vectors();
    }
}
