"""device_print and device_assert.

A print builds its lines in memory and hands them to the C library in one call, so that threads do not mix them. A
failed assertion ends its program; the error is raised in Python's main thread, once, after the launch.
"""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.builder import Builder, Value
from triton_cpu.llvm.convert import fp_to_fp
from triton_cpu.llvm.types import FLOATS, I32, I64, PTR, SIZES
from triton_cpu.lower.context import Context
from triton_cpu.lower.lanes import Place
from triton_cpu.lower.rules import eager
from triton_cpu.ttir.attributes import flag, integers, string
from triton_cpu.ttir.nodes import Node, Var

_NUMBER = 32  # characters of a printed number, with what stands around it, at most
_TEXT = 8192  # bytes collected before they are printed, at least one line

# Write out the lines collected in a buffer; the last line end becomes the one that puts adds.
_PRINT = """define internal void @print_lines(ptr %text, ptr %used) noinline {
  %length = load i64, ptr %used
  %nothing = icmp eq i64 %length, 0
  br i1 %nothing, label %done, label %write
write:
  %last = sub i64 %length, 1
  %end = getelementptr i8, ptr %text, i64 %last
  store i8 0, ptr %end
  %r = call i32 @puts(ptr %text)
  %s = call i32 @fflush(ptr null)
  store i64 0, ptr %used
  br label %done
done:
  ret void
}"""
# The first failure since the last report leaves its text and asks the interpreter to raise it.
_FAIL = """@failed = internal global i32 0
@failure = internal global [1024 x i8] zeroinitializer
define internal i32 @report(ptr %text) {
  store atomic i32 0, ptr @failed seq_cst, align 4
  %type = load ptr, ptr @PyExc_AssertionError
  call void @PyErr_SetString(ptr %type, ptr %text)
  ret i32 -1
}
define internal void @fail(ptr %format, i32 %x, i32 %y, i32 %z) noinline {
  %before = atomicrmw xchg ptr @failed, i32 1 seq_cst
  %first = icmp eq i32 %before, 0
  br i1 %first, label %tell, label %done
tell:
  %n = call i32 (ptr, i64, ptr, ...) @snprintf(ptr @failure, i64 1024, ptr %format, i32 %x, i32 %y, i32 %z)
  %r = call i32 @Py_AddPendingCall(ptr @report, ptr @failure)
  br label %done
done:
  ret void
}"""


@eager("tt.print")
def device_print(cx: Context, node: Node) -> None:
    """A line for each element: "pid (x, y, z) idx (i, j) prefix value"; "(operand k)" where there are several."""
    b, prefix = cx.b, string(node, "prefix").replace("%", "%%")
    line = len(prefix.encode()) + _NUMBER * (6 + max([0, *(len(operand.type.sizes) for operand in node.operands)]))
    size = max(_TEXT, 2 * line)
    text, used = b.buffer(size), b.buffer(8)
    b.store(Value("0", I64), used)
    b.globals["print_lines"] = _PRINT
    b.declarations["puts"] = "declare i32 @puts(ptr)"
    b.declarations["fflush"] = "declare i32 @fflush(ptr)"
    signs = integers(node, "isSigned")

    def add(form: str, values: Sequence[Value]) -> None:
        full = b.compare("icmp ugt", b.load(I64, used), Value(str(size - line), I64))
        with b.guarded(full):
            b.emit(f"call void @print_lines(ptr {text.text}, ptr {used.text})")
        start = b.load(I64, used)
        given = "".join(f", {value.type} {value.text}" for value in (*cx.program[:3], *values))
        format_ = _constant_text(b, f"pid (%d, %d, %d){form}\n")
        at = b.gep(text, start, "i8")
        b.declarations["snprintf"] = "declare i32 @snprintf(ptr, i64, ptr, ...)"
        called = f"call i32 (ptr, i64, ptr, ...) @snprintf(ptr {at.text}, i64 {line}, ptr {format_.text}{given})"
        length = b.cast("sext", b.value(I32, called), "i64")
        b.store(b.binary("add", start, length), used)

    for place, operand in enumerate(node.operands):
        which = f"(operand {place}) " if len(node.operands) > 1 else ""

        def element(at: Place, _: int | None, __: int, operand: Var = operand, k: int = place, w: str = which) -> None:
            value, form = _printable(cx, operand, cx.evaluate(operand, at, None, 0), bool(signs[k]), flag(node, "hex"))
            where = f" idx ({', '.join(['%lld'] * len(at))})" if at else ""
            add(f"{where}{prefix}{w}{form}", [*(b.index(i) for i in at), value])

        cx.each(operand.type.sizes, None, element)
    if not node.operands:
        add(prefix, ())
    b.emit(f"call void @print_lines(ptr {text.text}, ptr {used.text})")


def _printable(cx: Context, var: Var, value: Value, signed: bool, as_bits: bool) -> tuple[Value, str]:
    """A value as C passes it to a variadic function, and its conversion."""
    b, elem, name = cx.b, var.type.elem, var.type.name
    if elem in FLOATS or name.startswith("f8"):
        if elem != "double":
            single = fp_to_fp(b, value, "float", "rtne", name if name.startswith("f8") else None)
            value = b.cast("fpext", single, "double")
        return value, "%.17g" if elem == "double" else "%.9g"
    if elem == "ptr":
        return value, "%p"
    wide = b.cast("sext" if signed and elem != "i1" and not as_bits else "zext", value, "i64")
    return wide, f"0x%0{2 * SIZES[elem]}llx" if as_bits else "%lld" if signed else "%llu"


@eager("tt.assert")
def device_assert(cx: Context, node: Node) -> None:
    """Where a condition is false, the program ends and AssertionError is raised in Python; only in debug mode."""
    if not cx.machine.debug:
        return
    b, condition = cx.b, node.operands[0]
    message = f"{node.location or 'device_assert'}: {string(node, 'message')}".replace("%", "%%")
    text = _constant_text(b, f"{message} (in program %d, %d, %d)")
    b.globals["fail"] = _FAIL
    b.declarations |= {
        "snprintf": "declare i32 @snprintf(ptr, i64, ptr, ...)",
        "Py_AddPendingCall": "declare i32 @Py_AddPendingCall(ptr, ptr)",
        "PyErr_SetString": "declare void @PyErr_SetString(ptr, ptr)",
        "PyExc_AssertionError": "@PyExc_AssertionError = external global ptr",
    }

    def check(at: Place, _: int | None, __: int) -> None:
        failed, held = b.name("failed"), b.name("held")
        b.branch_if(cx.evaluate(condition, at, None, 0), held, failed)
        b.start(failed)
        program = ", ".join(f"{value.type} {value.text}" for value in cx.program[:3])
        b.emit(f"call void @fail(ptr {text.text}, {program})")
        b.emit("ret void")
        b.start(held)

    cx.each(condition.type.sizes, None, check)


def _constant_text(b: Builder, text: str) -> Value:
    """A C string."""
    name = b.name("text")
    data = text.encode() + b"\0"
    escaped = "".join(f"\\{byte:02X}" for byte in data)
    b.globals[name] = f'@{name} = private unnamed_addr constant [{len(data)} x i8] c"{escaped}"'
    return Value(f"@{name}", PTR)
