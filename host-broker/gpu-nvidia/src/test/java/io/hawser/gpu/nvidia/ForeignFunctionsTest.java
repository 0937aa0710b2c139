package io.hawser.gpu.nvidia;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.hawser.cuda.generated.CudaGraphNative;
import io.hawser.cuda.generated.CudaMemopsNative;
import io.hawser.cuda.generated.CudaNative;
import io.hawser.cuda.generated.CudaTensorMapNative;
import java.lang.classfile.ClassFile;
import java.lang.classfile.constantpool.MethodRefEntry;
import java.lang.classfile.constantpool.PoolEntry;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;

class ForeignFunctionsTest {
    /** Each function costs the start of every worker some time. */
    @Test
    void shouldCallEachFunctionThatDescriptionListsForBackend() throws Exception {
        Set<String> uncalled = new TreeSet<>();
        for (Class<?> type : List.of(CudaNative.class, CudaGraphNative.class, CudaMemopsNative.class,
            CudaTensorMapNative.class)) {
            for (Method method : type.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers())) {
                    uncalled.add(type.getName().replace('.', '/') + "." + method.getName());
                }
            }
        }
        Path classes = Path.of(NvidiaProvider.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try (Stream<Path> files = Files.walk(classes)) {
            for (Path file : files.filter(path -> path.toString().endsWith(".class")).toList()) {
                for (PoolEntry entry : ClassFile.of().parse(file).constantPool()) {
                    if (entry instanceof MethodRefEntry call) {
                        uncalled.remove(call.owner().asInternalName() + "." + call.name().stringValue());
                    }
                }
            }
        }
        assertEquals(Set.of(), uncalled);
    }
}
