package io.hawser.worker.calls;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.HandleKind;
import io.hawser.cuda.generated.cublas.CublasOpcodes;
import io.hawser.cuda.generated.cublaslt.CublasLtOpcodes;
import io.hawser.cuda.generated.cudnn.CudnnOpcodes;
import io.hawser.cuda.generated.cusolver.CusolverOpcodes;
import io.hawser.cuda.generated.cusparse.CusparseOpcodes;
import io.hawser.cuda.generated.cusparselt.CusparseLtOpcodes;
import io.hawser.worker.fixture.Carrier;
import io.hawser.worker.fixture.Guest;
import io.hawser.worker.fixture.Rig;
import java.io.IOException;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

@Timeout(60)
class LibraryHandlesTest {
    /** Libraries whose handles take no argument; the tests of cuFFT and cuRAND have the same case. */
    enum Library {
        CUBLAS(HandleKind.CUBLAS, CublasOpcodes.cublasCreate_v2, CublasOpcodes.cublasDestroy_v2),
        CUBLASLT(HandleKind.CUBLASLT, CublasLtOpcodes.cublasLtCreate, CublasLtOpcodes.cublasLtDestroy),
        CUDNN(HandleKind.CUDNN, CudnnOpcodes.cudnnCreate, CudnnOpcodes.cudnnDestroy),
        CUSOLVER(HandleKind.CUSOLVER, CusolverOpcodes.cusolverDnCreate, CusolverOpcodes.cusolverDnDestroy),
        CUSPARSE(HandleKind.CUSPARSE, CusparseOpcodes.cusparseCreate, CusparseOpcodes.cusparseDestroy),
        CUSPARSELT(HandleKind.CUSPARSELT, CusparseLtOpcodes.hwsSltCreate, CusparseLtOpcodes.hwsSltDestroy);

        private final HandleKind kind;
        private final int create;
        private final int destroy;

        Library(HandleKind kind, int create, int destroy) {
            this.kind = kind;
            this.create = create;
            this.destroy = destroy;
        }
    }

    /** As a program that calls cudaDeviceReset() first. */
    @ParameterizedTest
    @EnumSource
    void shouldAcceptTheEndOfHandleWhoseContextHasEnded(Library library) throws IOException {
        try (Rig rig = Rig.withGuest(Carrier.TCP)) {
            Guest guest = rig.guest();
            long first = guest.context();
            long other = guest.newId(HandleKind.CONTEXT);
            assertEquals(0, guest.call(Guest.CONTEXT_CREATE, other, 0, 0).status());
            guest.useContext(other);
            long handle = guest.newId(library.kind);
            assertEquals(0, guest.call(library.create, handle).status());
            guest.useContext(first);
            assertEquals(0, guest.call(Guest.CONTEXT_DESTROY, other).status());
            guest.send(library.destroy, 0, handle);
            assertEquals(0, guest.call(Guest.CTX_SYNCHRONIZE).status());
        }
    }
}
