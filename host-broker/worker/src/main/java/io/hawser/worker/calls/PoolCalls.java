package io.hawser.worker.calls;

import io.hawser.worker.session.Call;
import io.hawser.worker.session.CudaResult;
import java.util.HashMap;
import java.util.Map;

/**
 * Attributes of memory pools. Those that a program sets are hints about caching, kept here and given back; pools of
 * their own and the attributes that measure a pool are refused.
 */
final class PoolCalls {
    private static final int REUSE_ALLOW_INTERNAL_DEPENDENCIES = 3; // CUmemPool_attribute; 1 and 2 are its like
    private static final int RELEASE_THRESHOLD = 4; // CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    private static final int MAX_KEPT = 4096; // pools come from devices, of which there are few

    private record Key(long pool, int attribute) { }

    private final Map<Key, Long> kept = new HashMap<>();

    void hwsMemPoolCreate(Call call) {
        call.fail(CudaResult.NOT_SUPPORTED);
    }

    void hwsMemPoolGetAttribute(Call call, long nativePool, int attribute) {
        if (attribute < 1 || attribute > RELEASE_THRESHOLD) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        // CUDA's defaults: every kind of reuse is allowed, nothing is held back.
        long initial = attribute <= REUSE_ALLOW_INTERNAL_DEPENDENCIES ? 1 : 0;
        call.reply().fixed(Long.BYTES);
        call.reply().i64(0, kept.getOrDefault(new Key(nativePool, attribute), initial));
        call.finish(0);
    }

    void hwsMemPoolSetAttribute(Call call, long nativePool, int attribute, long value) {
        if (attribute < 1 || attribute > RELEASE_THRESHOLD || kept.size() >= MAX_KEPT) {
            call.fail(CudaResult.NOT_SUPPORTED);
            return;
        }
        kept.put(new Key(nativePool, attribute), value);
        call.finish(0);
    }
}
