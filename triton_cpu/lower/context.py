"""Chunked evaluation: tensors stay unevaluated until an operation that must happen asks for chunks of them."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from triton_cpu.analysis.axis import REMAINDERS, step, vector_axis
from triton_cpu.analysis.materialise import to_materialise
from triton_cpu.errors import UnsupportedOpError
from triton_cpu.llvm.builder import FALSE, Builder, Index, Value
from triton_cpu.llvm.types import I64, SIZES, VOID, Type, stored
from triton_cpu.lower import Note, access
from triton_cpu.lower.lanes import Affine, Buffer, Form, Guess, Induction, Lane, Place, Uniform, Vector
from triton_cpu.lower.rules import AFFINE, EAGER, ELEMENTWISE, LAZY, is_lazy
from triton_cpu.ttir.nodes import Block, Node, Var

_NESTED = 2  # loops of one element, one inside the other; of more than these the outer ones become one: deep nests
#              (of tl.sort, tl.flip) take LLVM several times as long
Body = Callable[[Place, int | None, int], None]  # place, axis, lanes


@dataclass(frozen=True)
class Machine:
    """What the code may rely on.

    Attributes:
        features: instruction sets, see host.py.
        lanes: elements of a chunk at most.
        fuse: whether a * b + c outside of tl.dot may become one instruction.
        debug: whether device_assert is checked.
    """

    features: frozenset[str]
    lanes: int
    fuse: bool
    debug: bool


class Context:
    """The state of lowering one function."""

    def __init__(self, b: Builder, machine: Machine) -> None:
        self.b = b
        self.machine = machine
        self.forms: dict[Var, Form] = {}
        self.targets: dict[Var, Buffer] = {}  # dot result -> the buffer to accumulate in
        self.labels: dict[str, str] = {}  # block of the function -> LLVM label
        self.arguments: dict[str, list[Var]] = {}  # block of the function -> its arguments
        self.slots: dict[Var, Value] = {}  # such an argument -> its place on the stack
        self.program: Sequence[Value] = ()  # program ids, then numbers of programs, i32
        self.used: set[Var] = set()  # operands of any operation of the function
        self.kept: set[Var] = set()  # tensors to put into memory for other blocks of the function
        self.functions: dict[str, Node] = {}  # that may be called
        self.calls: list[str] = []  # those that are being called
        self.uses_tiles = False
        self.notes: dict[Note, None] = {}  # for people; a dict, because most are made several times
        self._memo: list[dict[tuple[Var, Place, int | None, int], Lane]] = [{}]
        self._before: dict[Var, Form | None] = {}  # put into memory in this scope -> the form it had before

    # -- operations ------------------------------------------------------------------------------------------------
    def run(self, block: Block) -> Node:
        """Emit a block; its terminator, which was carried out if it has a rule."""
        early = to_materialise(block) | self.kept
        for node in block.nodes:
            self.visit(node)
            for result in node.results:
                if result in early:
                    self.materialise(result)
        return block.terminator

    def visit(self, node: Node) -> None:
        """Carry out an operation, or leave it for later if its result is a tensor that can wait."""
        if is_lazy(node):
            if not node.result.type.is_tensor:
                self.forms[node.result] = self._compute(node, (), None, 0).value  # type: ignore[union-attr]
            return
        rule = EAGER.get(node.name)
        if rule is None:
            raise UnsupportedOpError(node.name, node.location)
        rule(self, node)

    def note(self, node: Node, text: str) -> None:
        """Say what was decided about an operation."""
        self.notes[Note(node.location, node.name, text)] = None

    # -- evaluation ------------------------------------------------------------------------------------------------
    def scalar(self, var: Var) -> Value:
        """The value of a scalar."""
        form = self.forms[var]
        if not isinstance(form, Value):
            raise TypeError(f"{var} is a tensor")
        return form

    def chunk(self, var: Var, at: Place, axis: int | None, lanes: int) -> Lane:
        """`lanes` elements along dimension `axis` from `at` on; one element for 0 lanes and axis None."""
        if not var.type.is_tensor:
            return Uniform(self.scalar(var))
        form = self.forms.get(var)
        if isinstance(form, Buffer):
            return self._from_memory(var, form, at, axis, lanes)
        key = (var, at, axis, lanes)
        for scope in self._memo:
            if key in scope:
                return scope[key]
        if isinstance(form, Induction):
            lane = self._shifted(var, form, self.chunk(form.start, at, axis, lanes), lanes)
        elif var.node is None or not is_lazy(var.node):
            raise KeyError(f"no value for {var}")
        else:
            lane = self._compute(var.node, at, axis, lanes)
        self._memo[-1][key] = lane
        return lane

    def evaluate(self, var: Var, at: Place, axis: int | None, lanes: int) -> Value:
        """A chunk as a vector, or one element as a scalar for 0 lanes."""
        return self.vector(var, self.chunk(var, at, axis, lanes), lanes)

    def vector(self, var: Var, lane: Lane, lanes: int) -> Value:
        """A lane of `var` spelled out."""
        b = self.b
        if isinstance(lane, Vector):
            return lane.value
        if isinstance(lane, Uniform):
            return b.splat(lane.value, lanes)
        if isinstance(lane, Guess):
            return self.either(lane.holds, lambda: self.vector(var, lane.affine, lanes), lane.exact)
        steps = self.multiples(lane.stride, lanes)
        if var.type.elem == "ptr":
            return access.pointers(b, lane.base, steps, var.type.pointee)
        return b.binary("add", b.splat(lane.base, lanes), b.cast("trunc", steps, var.type.elem))

    def multiples(self, stride: Index, lanes: int) -> Value:
        """0, stride, 2 * stride, ... as i64."""
        if isinstance(stride, int):
            return self.b.iota("i64", lanes, stride)
        return self.b.binary("mul", self.b.iota("i64", lanes), self.b.splat(stride, lanes))

    def _compute(self, node: Node, at: Place, axis: int | None, lanes: int) -> Lane:
        if node.name in LAZY:
            return LAZY[node.name](self, node, at, axis, lanes)
        args = [self.chunk(operand, at, axis, lanes) for operand in node.operands]
        lane = self._affine(node, args, lanes)
        if lane is not None:
            return lane
        rule = ELEMENTWISE[node.name]
        if all(isinstance(arg, Uniform) for arg in args):
            return Uniform(rule(self, node, [arg.value for arg in args]))  # type: ignore[union-attr]
        values = [self.vector(var, arg, lanes) for var, arg in zip(node.operands, args, strict=True)]
        return Vector(rule(self, node, values))

    def _affine(self, node: Node, args: Sequence[Lane], lanes: int) -> Affine | Guess | None:
        """The lane of an operation that stays affine, as far as its operands are."""
        plain = [arg.affine if isinstance(arg, Guess) else arg for arg in args if not isinstance(arg, Vector)]
        if node.name not in AFFINE or len(plain) < len(args) or not any(isinstance(arg, Affine) for arg in plain):
            return None
        lane = AFFINE[node.name](self, node, plain, lanes)
        holds = [arg.holds for arg in args if isinstance(arg, Guess)]
        if lane is None or not holds:
            return lane
        if isinstance(lane, Guess):
            holds, lane = [*holds, lane.holds], lane.affine

        def exact() -> Value:
            pairs = zip(node.operands, args, strict=True)
            values = [arg.exact() if isinstance(arg, Guess) else self.vector(var, arg, lanes) for var, arg in pairs]
            return ELEMENTWISE[node.name](self, node, values)

        return Guess(lane, functools.reduce(lambda x, y: self.b.binary("and", x, y), holds), exact)

    def neighbours(self, first: Value, last: Value, lanes: int, exact: Callable[[], Value]) -> Guess:
        """first, first + 1, ... if `last` says so: for elements that never rise by more than 1 from lane to lane."""
        distance = self.b.binary("sub", last, first)
        holds = self.b.compare("icmp eq", distance, self.b.const(first.type, lanes - 1))
        return Guess(Affine(first, 1), holds, exact)

    def either(self, holds: Value, one: Callable[[], Value], other: Callable[[], Value]) -> Value:
        """The value of `one` if the scalar i1 holds, else that of `other`."""
        b, (yes, no, after) = self.b, (self.b.name("then"), self.b.name("else"), self.b.name("endif"))
        b.branch_if(holds, yes, no)
        arrivals = []
        for label, write in ((yes, one), (no, other)):
            b.start(label)
            with self.scope():
                value = write()
            arrivals.append(f"[ {value.text}, %{b.block} ]")
            b.branch(after)
        b.start(after)
        return b.value(value.type, f"phi {value.type} {', '.join(arrivals)}")

    def _shifted(self, var: Var, form: Induction, lane: Lane, lanes: int) -> Lane:
        b, offset = self.b, form.offset
        if isinstance(lane, Guess):
            affine, exact = self._shifted(var, form, lane.affine, lanes), lane.exact
            assert isinstance(affine, Affine)
            return Guess(
                affine, lane.holds, lambda: self.vector(var, self._shifted(var, form, Vector(exact()), lanes), lanes)
            )
        if isinstance(lane, Vector):
            if var.type.elem == "ptr":
                return Vector(access.pointers(b, lane.value, b.splat(offset, lanes), var.type.pointee))
            return Vector(b.binary("add", lane.value, b.splat(offset, lanes)))
        base = lane.value if isinstance(lane, Uniform) else lane.base
        is_pointer = var.type.elem == "ptr"
        moved = b.gep(base, offset, stored(var.type.pointee)) if is_pointer else b.binary("add", base, offset)
        return Uniform(moved) if isinstance(lane, Uniform) else Affine(moved, lane.stride)

    # -- buffers ---------------------------------------------------------------------------------------------------
    def new_buffer(self, shape: tuple[int, ...], elem: str) -> Buffer:
        """Memory for a tensor."""
        return Buffer(self.b.buffer(SIZES[elem] * math.prod(shape)), shape, elem)

    def place_of(self, buffer: Buffer, at: Place) -> Value:
        """Pointer to an element of a buffer."""
        offset: Index = 0
        for coordinate, stride in zip(at, buffer.strides(), strict=True):
            offset = self.b.add(offset, self.b.mul(coordinate, stride))
        return self.b.gep(buffer.pointer, offset, stored(buffer.elem))

    def _from_memory(self, var: Var, form: Buffer, at: Place, axis: int | None, lanes: int) -> Lane:
        """A chunk of a tensor that was put into memory; of neighbours modulo a number, whether it is affine."""
        lane = self.read(form, at, axis, lanes)
        if var.node is None or var.node.name not in REMAINDERS or axis is None or step(self.forms, var, axis) != 1:
            return lane
        end = tuple(self.b.add(i, lanes - 1) if dim == axis else i for dim, i in enumerate(at))
        first, last = (access.load(self.b, form.elem, 0, self.place_of(form, place)) for place in (at, end))
        return self.neighbours(first, last, lanes, lambda: self.vector(var, lane, lanes))

    def read(self, buffer: Buffer, at: Place, axis: int | None, lanes: int) -> Lane:
        """A chunk of a buffer."""
        b, pointer = self.b, self.place_of(buffer, at)
        if axis is None:
            return Uniform(access.load(b, buffer.elem, 0, pointer))
        stride = buffer.strides()[axis]
        if stride == 1:
            return Vector(access.load(b, buffer.elem, lanes, pointer))
        places = access.pointers(b, pointer, self.multiples(stride, lanes), buffer.elem)
        every = b.const(Type("i1", lanes), True)
        return Vector(access.gather(b, buffer.elem, places, every, b.poison(Type(stored(buffer.elem), lanes))))

    def write(self, buffer: Buffer, at: Place, axis: int | None, value: Value) -> None:
        """Store a chunk into a buffer."""
        b, pointer = self.b, self.place_of(buffer, at)
        if axis is None or buffer.strides()[axis] == 1:
            access.store(b, value, pointer)
            return
        places = access.pointers(b, pointer, self.multiples(buffer.strides()[axis], value.type.lanes), buffer.elem)
        access.scatter(b, value, places, b.const(Type("i1", value.type.lanes), True))

    def materialise(self, var: Var) -> Buffer:
        """Evaluate a whole tensor into memory, once in this scope and those inside it."""
        form = self.forms.get(var)
        if isinstance(form, Buffer):
            return form
        buffer = self.new_buffer(var.type.sizes, var.type.elem)
        if var.node is not None:
            shape, size = "x".join(map(str, var.type.sizes)), SIZES[var.type.elem] * math.prod(var.type.sizes)
            self.note(var.node, f"put into memory: {shape} {var.type.elem}, {size} bytes")
        self.fill(buffer, var)
        self._before.setdefault(var, form)
        self.forms[var] = buffer
        self.forget()
        return buffer

    def fill(self, buffer: Buffer, var: Var) -> None:
        """Evaluate a tensor into a buffer of its shape."""

        def body(at: Place, axis: int | None, lanes: int) -> None:
            self.write(buffer, at, axis, self.evaluate(var, at, axis, lanes))

        self.each(buffer.shape, vector_axis(self.forms, var), body)

    def copy(self, source: Buffer, to: Buffer) -> None:
        """Copy a buffer into another of its shape."""
        size = Value(str(SIZES[source.elem] * math.prod(source.shape)), I64)
        self.b.call("llvm.memcpy.p0.p0.i64", VOID, (to.pointer, source.pointer, size, FALSE))
        self.forget()

    # -- loops -----------------------------------------------------------------------------------------------------
    def each(self, shape: tuple[int, ...], axis: int | None, body: Body, lanes: int | None = None) -> None:
        """Run `body` on every chunk of a shape, chunks along `axis` innermost."""
        if axis is not None and shape[axis] == 1:
            axis = None
        lanes = 0 if axis is None else lanes or min(shape[axis], self.machine.lanes)
        others = [dim for dim in range(len(shape)) if dim != axis and shape[dim] > 1]
        outer = others[: len(others) - _NESTED + 1] if len(others) > _NESTED else []
        order = others[len(outer) :] + ([] if axis is None else [axis])

        def nest(depth: int, at: dict[int, Index]) -> None:
            if depth == len(order):
                body(tuple(at.get(dim, 0) for dim in range(len(shape))), axis, lanes)
                return
            dim = order[depth]
            with self.loop(0, shape[dim], lanes if dim == axis else 1) as i:
                nest(depth + 1, {**at, dim: i})

        with self.loop(0, math.prod(shape[dim] for dim in outer)) as flat:
            nest(0, self._digits(flat, shape, outer))

    def _digits(self, flat: Index, shape: tuple[int, ...], dims: Sequence[int]) -> dict[int, Index]:
        """Coordinates along `dims`, whose sizes are powers of two, of the element with that number."""
        at: dict[int, Index] = {}
        for dim in reversed(dims):
            if isinstance(flat, int):
                flat, at[dim] = divmod(flat, shape[dim])
                continue
            at[dim] = self.b.binary("and", flat, self.b.const(I64, shape[dim] - 1))
            flat = self.b.binary("lshr", flat, self.b.const(I64, shape[dim].bit_length() - 1))
        return at

    @contextmanager
    def loop(self, low: int, high: int, step: int = 1) -> Iterator[Index]:
        """A counted loop of at least one turn."""
        with self.b.loop(low, high, step) as i, self.scope():
            yield i

    def fold(
        self,
        low: int,
        high: int,
        step: int,
        initial: Sequence[Value],
        body: Callable[[Index, list[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A loop that carries values, see Builder.fold."""

        def turn(i: Index, carried: list[Value]) -> Sequence[Value]:
            with self.scope():
                return body(i, carried)

        return self.b.fold(low, high, step, initial, turn)

    def for_loop(
        self,
        low: Value,
        high: Value,
        step: Value,
        initial: Sequence[Value],
        body: Callable[[Value, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """A loop over scalars that may have no turn: body(i, carried) gives the next ones; those after it."""
        b = self.b
        before, head, inside, after = b.block, b.name("for"), b.name("body"), b.name("endfor")
        b.branch(head)
        b.start(head)
        i = Value("%" + b.name("i"), low.type)
        phis = [Value("%" + b.name("carried"), value.type) for value in initial]
        at = len(b.lines)
        b.lines.append("")
        b.branch_if(b.compare("icmp slt", i, high), inside, after)
        b.start(inside)
        self.forget()
        with self.scope():
            new = body(i, phis)
        entries = [(i, low, b.binary("add", i, step)), *zip(phis, initial, new, strict=True)]
        b.lines[at] = "\n".join(
            f"  {phi.text} = phi {phi.type} [ {first.text}, %{before} ], [ {then.text}, %{b.block} ]"
            for phi, first, then in entries
        )
        b.branch(head)
        b.start(after)
        self.forget()
        return phis

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is evaluated or put into memory inside is not known outside, where it might not have been."""
        outer, self._before = self._before, {}
        self._memo.append({})
        yield
        self._memo.pop()
        for var, form in self._before.items():
            if form is None:
                self.forms.pop(var, None)
            else:
                self.forms[var] = form
        self._before = outer

    def forget(self) -> None:
        """Memory has changed, or control flow has joined: evaluate anew."""
        for scope in self._memo:
            scope.clear()
