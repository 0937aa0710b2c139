package io.hawser.cuda.generator.model;

import io.hawser.cuda.generator.model.Param.Shape;
import io.hawser.cuda.generator.yaml.GroupYaml.ParamYaml;

/** Determines the wire form of a described parameter. */
final class ParamReader {
    private final TypeTable types;
    private final String owner;
    private final ParamYaml yaml;

    ParamReader(TypeTable types, String function, ParamYaml yaml) {
        this.types = types;
        this.owner = function + "." + yaml.name();
        this.yaml = yaml;
    }

    Param read(boolean travels) {
        if (!travels) {
            return param(Shape.LOCAL, null, null);
        }
        boolean pointer = yaml.type().endsWith("*");
        if (yaml.workspace() != null) {
            return param(Shape.WORKSPACE, null, SizeExpression.parse(owner, yaml.workspace()));
        }
        if (scalar() != null) {
            return param(yaml.dir().equals("in") ? Shape.STRUCT : Shape.INOUT,
                plain(types.find(yaml.scalar() != null ? "HwsScalar" : "HwsScalars")), null);
        }
        return switch (yaml.dir()) {
            case "new" -> param(Shape.NEW, handle(types.pointee(yaml.type())), null);
            case "drop" -> param(Shape.DROP, handle(types.find(yaml.type())), null);
            case "inout" -> param(Shape.INOUT, plain(types.pointee(yaml.type())), null);
            case "out" -> out();
            case "in" -> pointer || yaml.descriptor() != null ? inPointer() : inValue();
            default -> throw bad("dir must be in, out, inout, new or drop", "dir=" + yaml.dir());
        };
    }

    private String scalar() {
        return yaml.scalar() != null ? yaml.scalar() : yaml.scalars();
    }

    private Param inValue() {
        CType type = types.find(yaml.type());
        return type instanceof CType.Handle ? param(Shape.HANDLE, handle(type), null)
            : param(type instanceof CType.Structure ? Shape.STRUCT : Shape.NUMBER, plain(type), null);
    }

    private Param inPointer() {
        if (yaml.descriptor() != null) {
            return param(Shape.STRUCT, plain(types.find(yaml.descriptor())), null);
        }
        if (yaml.device() != null || yaml.unchecked() != null) {
            return param(Shape.NUMBER, types.find("unsigned long long"), null);
        }
        if (yaml.string()) {
            return param(Shape.TEXT, null, null);
        }
        CType element = types.pointee(yaml.type());
        SizeExpression bytes = bytes(element);
        if (bytes == null) {
            return param(Shape.STRUCT, plain(element), null);
        }
        return element instanceof CType.Handle ? param(Shape.HANDLES, handle(element), bytes)
            : param(Shape.BYTES, element == null ? null : plain(element), bytes);
    }

    private Param out() {
        CType element = types.pointee(yaml.type());
        SizeExpression bytes = bytes(element);
        if (bytes != null) {
            return param(Shape.OUT_BYTES, element == null ? null : plain(element), bytes);
        }
        plain(element);
        return param(element instanceof CType.Structure ? Shape.OUT_STRUCT : Shape.OUT_NUMBER, element, null);
    }

    private SizeExpression bytes(CType element) {
        if (yaml.bytes() != null) {
            return SizeExpression.parse(owner, yaml.bytes());
        }
        if (yaml.count() != null) {
            return SizeExpression.parse(owner, "(" + yaml.count() + ")*" + (element == null ? 1 : element.size()));
        }
        return null;
    }

    private Param param(Shape shape, CType value, SizeExpression bytes) {
        boolean buffer = bytes != null || shape == Shape.TEXT;
        if (buffer && (yaml.max() == null || yaml.limit() == null)) {
            throw bad("a buffer must have max and limit, the abuse that it stops", "max=" + yaml.max());
        }
        String conversion = yaml.descriptor() != null ? "HWS_DESCRIPTOR(" + yaml.descriptor() + ", " + yaml.name() + ")"
            : null;
        Param.Scalar scalar = scalar() == null ? null : new Param.Scalar(SizeExpression.parse(owner, scalar()),
            !yaml.dir().equals("out"), !yaml.dir().equals("in"));
        return new Param(yaml.name(), yaml.type(), shape, value, bytes, yaml.max() == null ? 0 : yaml.max(),
            yaml.nullable(), yaml.variable(), yaml.bulk(),
            yaml.device() == null ? null : SizeExpression.parse(owner, yaml.device()), conversion,
            scalar);
    }

    private CType handle(CType type) {
        if (!(type instanceof CType.Handle handle) || handle.kind() == null) {
            throw bad("a handle that travels must have a kind", "type=" + yaml.type());
        }
        return type;
    }

    /** Rejects pointers and handles inside other values: a guest could make the worker follow them. */
    private CType plain(CType type) {
        if (type == null || !type.plain()) {
            throw bad("a value on the wire must contain neither pointer nor handle", "type=" + yaml.type());
        }
        return type;
    }

    private DescriptionException bad(String rule, String values) {
        return new DescriptionException(owner + ": " + rule + ": " + values);
    }
}
