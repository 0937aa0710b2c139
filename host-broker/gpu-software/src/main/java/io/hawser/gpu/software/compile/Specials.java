package io.hawser.gpu.software.compile;

import io.hawser.gpu.software.exec.Special;
import io.hawser.gpu.software.ptx.PtxType;
import java.lang.reflect.Method;
import java.util.HashMap;
import java.util.Map;

/** The supported special registers; each is a method of {@link Special}. */
final class Specials {
    private static final Map<String, Boolean> LONG = new HashMap<>();

    static {
        for (Method method : Special.class.getDeclaredMethods()) {
            if (method.getParameterCount() == 2 && method.getReturnType() != void.class) {
                LONG.put(method.getName(), method.getReturnType() == long.class);
            }
        }
        LONG.remove("envreg");
    }

    private Specials() {
    }

    static boolean known(String name) {
        return name.startsWith("envreg") || LONG.containsKey(name.replace('.', '_'));
    }

    static PtxType type(String name) {
        return LONG.getOrDefault(name.replace('.', '_'), false) ? PtxType.U64 : PtxType.U32;
    }

    static void push(Gen g, String name) {
        g.slot();
        if (name.startsWith("envreg")) {
            g.push(Integer.parseInt(name.substring(6)));
            g.call("Special", "envreg", "ICI");
        } else {
            g.thread();
            g.call("Special", name.replace('.', '_'), (type(name) == PtxType.U64 ? "J" : "I") + "CI");
        }
    }
}
