"""AMX without AMX: the tile instructions of LLVM IR as calls of an emulated tile unit.

    machine = TileMachine()
    code = compile_to_object(machine.rewrite(llvm_ir), host().llvm_features)
    ...                  # link and run
    machine.check()      # raises what hardware would have trapped on
    machine.executed     # tiles multiplied

Each thread has its own tiles, as on hardware. What traps there is recorded, since an exception cannot pass through
machine code: later tile instructions then do nothing, and check() raises it.
"""

from __future__ import annotations

import ctypes
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.triton_cpu.tile_arithmetic import bf16_product, f16_product, int8_product

TILES, ROWS, ROW_BYTES, CONFIG_BYTES = 8, 16, 64, 64

# multiplication -> element it accumulates, element of the operands, arithmetic
_PRODUCTS: dict[str, tuple[type, type, Callable[..., np.ndarray]]] = {
    "tdpbf16ps": (np.float32, np.uint16, bf16_product),
    "tdpfp16ps": (np.float32, np.uint16, f16_product),
    "tdpbssd": (np.int32, np.uint8, lambda c, a, b: int8_product(c, a, b, True, True)),
    "tdpbsud": (np.int32, np.uint8, lambda c, a, b: int8_product(c, a, b, True, False)),
    "tdpbusd": (np.int32, np.uint8, lambda c, a, b: int8_product(c, a, b, False, True)),
    "tdpbuud": (np.int32, np.uint8, lambda c, a, b: int8_product(c, a, b, False, False)),
}
_CONFIG = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_RELEASE = ctypes.CFUNCTYPE(None)
_ZERO = ctypes.CFUNCTYPE(None, ctypes.c_int32)
_MEMORY = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64)
_PRODUCT = ctypes.CFUNCTYPE(None, ctypes.c_int32, ctypes.c_int32, ctypes.c_int32)

_DECLARATION = re.compile(r"^declare void @llvm\.x86\.(?:tile|ldtilecfg|tdp)[^\n]*\n?", re.MULTILINE)
_CALL = re.compile(r"@llvm\.x86\.((?:tile|ldtilecfg|tdp)[\w.]*)\(((?:\s*i8 [^,()]+,?)*)")
_LEFT_OVER = re.compile(r"@llvm\.x86\.(?:tile|ldtilecfg|tdp|sttilecfg)[\w.]*|\bx86_amx\b")


class TileFault(Exception):
    """What a processor would have answered with an invalid-opcode or protection fault."""


class _Unit:
    """Tile configuration and data of one thread."""

    def __init__(self) -> None:
        self.rows = [0] * TILES
        self.row_bytes = [0] * TILES
        self.data: dict[int, np.ndarray] = {}  # tile -> [rows, row_bytes] uint8; only what was loaded or zeroed
        self.configured = False


class TileMachine:
    """An emulated tile unit; it must live as long as code made from its rewrite() may run.

    Attributes:
        counts: executed instructions by name, e.g. counts["tileloadd64"].
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._units: dict[int, _Unit] = {}
        self._failure: Exception | None = None
        self._lock = threading.Lock()
        self._callbacks: dict[str, Any] = {
            "ldtilecfg": self._callback(_CONFIG, "ldtilecfg", self._configure),
            "tilerelease": self._callback(_RELEASE, "tilerelease", self._release),
            "tilezero": self._callback(_ZERO, "tilezero", self._zero),
            "tileloadd64": self._callback(_MEMORY, "tileloadd64", self._load),
            "tileloaddt164": self._callback(_MEMORY, "tileloaddt164", self._load),
            "tilestored64": self._callback(_MEMORY, "tilestored64", self._store),
        }
        for name in _PRODUCTS:
            self._callbacks[name] = self._callback(_PRODUCT, name, self._multiplier(name))

    @property
    def executed(self) -> int:
        """Tiles multiplied so far."""
        return sum(self.counts[name] for name in _PRODUCTS)

    @property
    def released(self) -> bool:
        """No thread holds a tile configuration."""
        return not any(unit.configured for unit in self._units.values())

    def check(self) -> None:
        """Raise the first fault since the last check; the machine is then as new, counts kept."""
        failure, self._failure = self._failure, None
        if failure is not None:
            self._units.clear()
            raise failure

    def rewrite(self, llvm_ir: str) -> str:
        """The module with its tile instructions replaced by calls of this machine.

        The addresses in it belong to this process: the code must not outlive it in a cache.

        Raises:
            ValueError: an instruction that is not emulated, or a tile number that is no literal.
        """
        text = _CALL.sub(self._replacement, _DECLARATION.sub("", llvm_ir))
        left_over = _LEFT_OVER.search(text)
        if left_over:
            raise ValueError(f"{left_over.group()} is not emulated; known are {', '.join(self._callbacks)}")
        return text

    def _replacement(self, match: re.Match[str]) -> str:
        name, tiles = match.groups()
        if name not in self._callbacks:
            raise ValueError(f"@llvm.x86.{name} is not emulated; known are {', '.join(self._callbacks)}")
        for number in re.findall(r"i8 ([^,()]+)", tiles):
            if not number.strip().isdigit():
                raise ValueError(f"@llvm.x86.{name}: tile number {number.strip()!r} is not a literal")
        address = ctypes.cast(self._callbacks[name], ctypes.c_void_p).value
        return f"inttoptr (i64 {address} to ptr)({tiles.replace('i8 ', 'i32 ')}"

    def _callback(self, prototype: Any, name: str, action: Callable[..., None]) -> Any:
        def run(*operands: int) -> None:
            with self._lock:
                if self._failure is not None:
                    return
                try:
                    action(self._units.setdefault(threading.get_ident(), _Unit()), *operands)
                    self.counts[name] += 1
                except Exception as error:  # kept for check(): nothing can be raised through machine code
                    self._failure = error

        return prototype(run)

    def _configure(self, unit: _Unit, address: int | None) -> None:
        if not address:
            raise TileFault("ldtilecfg: null pointer")
        config = np.frombuffer(ctypes.string_at(address, CONFIG_BYTES), np.uint8)
        palette, start_row = int(config[0]), int(config[1])
        row_bytes, rows = config[16:48].view(np.uint16).tolist(), config[48:64].tolist()
        if palette == 0:
            self._release(unit)
            return
        if palette != 1 or start_row != 0:
            raise TileFault(f"ldtilecfg: palette {palette}, start row {start_row}; they must be 1 and 0")
        if config[2:16].any() or any(row_bytes[TILES:]) or any(rows[TILES:]):
            raise TileFault("ldtilecfg: reserved bytes of the configuration are not zero")
        for tile in range(TILES):
            if row_bytes[tile] > ROW_BYTES or rows[tile] > ROWS or (row_bytes[tile] == 0) != (rows[tile] == 0):
                raise TileFault(f"ldtilecfg: tile {tile} has {rows[tile]} rows of {row_bytes[tile]} bytes")
        unit.rows, unit.row_bytes, unit.data, unit.configured = rows[:TILES], row_bytes[:TILES], {}, True

    def _release(self, unit: _Unit) -> None:
        unit.__init__()  # type: ignore[misc]

    def _zero(self, unit: _Unit, tile: int) -> None:
        unit.data[tile] = np.zeros(_shape(unit, "tilezero", tile), np.uint8)

    def _load(self, unit: _Unit, tile: int, base: int | None, stride: int) -> None:
        rows, row_bytes = _shape(unit, "tileloadd", tile)
        if not base:
            raise TileFault(f"tileloadd of tile {tile} from a null pointer")
        data = b"".join(ctypes.string_at(base + row * stride, row_bytes) for row in range(rows))
        unit.data[tile] = np.frombuffer(data, np.uint8).reshape(rows, row_bytes)

    def _store(self, unit: _Unit, tile: int, base: int | None, stride: int) -> None:
        data = _content(unit, "tilestored", tile)
        if not base:
            raise TileFault(f"tilestored of tile {tile} to a null pointer")
        for row, line in enumerate(data):
            ctypes.memmove(base + row * stride, line.tobytes(), len(line))

    def _multiplier(self, name: str) -> Callable[..., None]:
        accumulated, element, product = _PRODUCTS[name]

        def multiply(unit: _Unit, c: int, a: int, b: int) -> None:
            shapes = [_shape(unit, name, tile) for tile in (c, a, b)]
            if len({c, a, b}) != 3:
                raise TileFault(f"{name}: tiles {c}, {a}, {b} are not three different ones")
            (m, n_bytes), (a_rows, k_bytes), (k, b_bytes) = shapes
            if a_rows != m or b_bytes != n_bytes or k_bytes != 4 * k:
                raise TileFault(f"{name}: (rows, bytes of a row) of C, A, B are {shapes}: M, N or K does not agree")
            left, right = (np.ascontiguousarray(_content(unit, name, tile)).view(element) for tile in (a, b))
            result = product(np.ascontiguousarray(_content(unit, name, c)).view(accumulated), left, right)
            unit.data[c] = np.ascontiguousarray(result).view(np.uint8)

        return multiply


def _shape(unit: _Unit, name: str, tile: int) -> tuple[int, int]:
    """Rows and bytes of a row, once it is sure that the tile can be used."""
    if not unit.configured:
        raise TileFault(f"{name}: this thread has no tile configuration")
    if not 0 <= tile < TILES:
        raise TileFault(f"{name}: there is no tile {tile}")
    rows, row_bytes = unit.rows[tile], unit.row_bytes[tile]
    if rows == 0 or row_bytes % 4:
        raise TileFault(f"{name}: tile {tile} is configured as {rows} rows of {row_bytes} bytes")
    return rows, row_bytes


def _content(unit: _Unit, name: str, tile: int) -> np.ndarray:
    """Data of a tile. One that was not written since ldtilecfg is zero on hardware; code that reads it has a fault."""
    _shape(unit, name, tile)
    if tile not in unit.data:
        raise TileFault(f"{name}: tile {tile} was neither loaded nor zeroed since ldtilecfg")
    return unit.data[tile]
