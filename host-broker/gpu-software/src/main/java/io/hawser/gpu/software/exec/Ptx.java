package io.hawser.gpu.software.exec;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;

/**
 * Names the PTX instructions that a method computes. The translator builds its table from these annotations, so that
 * the meaning of an instruction is in one place. A type T among arguments or result is the instruction's last type.
 */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.METHOD)
public @interface Ptx {
    /** Opcodes with the modifiers that change the result, such as {@code mul.hi.s32}. */
    String[] value();

    /** Types of the operands, separated by commas. If empty, each parameter of the method has type T. */
    String args() default "";

    /** Type of the result. */
    String result() default "T";
}
