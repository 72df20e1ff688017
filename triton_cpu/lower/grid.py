"""LLVM IR of the functions around a kernel: unpack arguments, run a range of programs, share the grid among threads."""

from __future__ import annotations

from collections.abc import Sequence

from triton_cpu.llvm.types import Type, stored

# Palette 1, eight tiles of 16 rows of 64 bytes.
_TILE_CONFIG = bytes([1, *[0] * 15, *[64, 0] * 8, *[0] * 16, *[16] * 8, *[0] * 8])
_ALIGN = 64


def grid_functions(types: Sequence[str], arena_bytes: int, tiles: bool, programs_per_fork: int) -> str:
    """Text of `range`, `worker` and `launch` for `kernel`, whose parameters are the arena, arguments, ids and counts.

    Args:
        types: LLVM types of the arguments, 8 bytes apart in the argument block.
        arena_bytes: memory each thread gives its programs for large buffers.
        tiles: whether the thread has to configure AMX tiles.
        programs_per_fork: smaller grids run on the calling thread.
    """
    unpack, passed = [], ["ptr %arena"]
    for place, kind in enumerate(types):
        unpack.append(f"  %p{place} = getelementptr i64, ptr %arguments, i64 {place}")
        unpack.append(f"  %x{place} = load {Type(stored(kind))}, ptr %p{place}, align 8")
        if kind == "i1":
            unpack.append(f"  %y{place} = trunc i8 %x{place} to i1")
        passed.append(f"{Type(kind)} %{'y' if kind == 'i1' else 'x'}{place}")
    passed += ["i32 %c0", "i32 %c1", "i32 %c2", "i32 %gx", "i32 %gy", "i32 %gz"]
    before, after = _arena(arena_bytes)
    if tiles:
        before.append("  call void @llvm.x86.ldtilecfg(ptr @tile_config)")
        after.insert(0, "  call void @llvm.x86.tilerelease()")
    return _TEMPLATE.format(
        unpack="\n".join(unpack),
        before="\n".join(before),
        after="\n".join(after),
        passed=", ".join(passed),
        extra=_tile_globals() if tiles else "",
        memory=_MEMORY if arena_bytes else "",
        programs=programs_per_fork,
    )


def _arena(size: int) -> tuple[list[str], list[str]]:
    if size == 0:
        return ["  %arena = select i1 true, ptr null, ptr null"], []
    before = [
        f"  %raw = call ptr @malloc(i64 {size + _ALIGN})",
        "  %address = ptrtoint ptr %raw to i64",
        f"  %up = add i64 %address, {_ALIGN - 1}",
        f"  %aligned = and i64 %up, {-_ALIGN}",
        "  %arena = inttoptr i64 %aligned to ptr",
    ]
    return before, ["  call void @free(ptr %raw)"]


def _tile_globals() -> str:
    config = ", ".join(f"i8 {byte}" for byte in _TILE_CONFIG)
    return (
        f"@tile_config = internal constant [64 x i8] [{config}], align 64\n"
        "declare void @llvm.x86.ldtilecfg(ptr)\ndeclare void @llvm.x86.tilerelease()\n"
    )


_MEMORY = "declare ptr @malloc(i64)\ndeclare void @free(ptr)\n"

_TEMPLATE = """
{extra}{memory}declare void @GOMP_parallel(ptr, ptr, i32, i32)
declare i32 @omp_get_thread_num()
declare i32 @omp_get_num_threads()

define internal void @range(ptr %arguments, i64 %low, i64 %high, i32 %gx, i32 %gy, i32 %gz) nounwind {{
entry:
{unpack}
{before}
  %wx = zext i32 %gx to i64
  %wy = zext i32 %gy to i64
  %any = icmp slt i64 %low, %high
  br i1 %any, label %program, label %done
program:
  %i = phi i64 [ %low, %entry ], [ %next, %program ]
  %r0 = urem i64 %i, %wx
  %q0 = udiv i64 %i, %wx
  %r1 = urem i64 %q0, %wy
  %q1 = udiv i64 %q0, %wy
  %c0 = trunc i64 %r0 to i32
  %c1 = trunc i64 %r1 to i32
  %c2 = trunc i64 %q1 to i32
  call void @kernel({passed})
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %high
  br i1 %more, label %program, label %done
done:
{after}
  ret void
}}

%grid = type {{ ptr, i64, i32, i32, i32 }}

define internal void @worker(ptr %grid) nounwind {{
  %thread32 = call i32 @omp_get_thread_num()
  %threads32 = call i32 @omp_get_num_threads()
  %thread = zext i32 %thread32 to i64
  %threads = zext i32 %threads32 to i64
  %arguments = load ptr, ptr %grid
  %ptotal = getelementptr %grid, ptr %grid, i64 0, i32 1
  %total = load i64, ptr %ptotal
  %px = getelementptr %grid, ptr %grid, i64 0, i32 2
  %gx = load i32, ptr %px
  %py = getelementptr %grid, ptr %grid, i64 0, i32 3
  %gy = load i32, ptr %py
  %pz = getelementptr %grid, ptr %grid, i64 0, i32 4
  %gz = load i32, ptr %pz
  %share = mul i64 %total, %thread
  %low = udiv i64 %share, %threads
  %share1 = add i64 %share, %total
  %high = udiv i64 %share1, %threads
  call void @range(ptr %arguments, i64 %low, i64 %high, i32 %gx, i32 %gy, i32 %gz)
  ret void
}}

define void @launch(ptr %arguments, i32 %gx, i32 %gy, i32 %gz, i32 %threads) nounwind {{
  %grid = alloca %grid, align 16
  %wx = zext i32 %gx to i64
  %wy = zext i32 %gy to i64
  %wz = zext i32 %gz to i64
  %wxy = mul i64 %wx, %wy
  %total = mul i64 %wxy, %wz
  %wthreads = zext i32 %threads to i64
  %few = icmp ult i64 %total, %wthreads
  %team = select i1 %few, i64 %total, i64 %wthreads
  %single = icmp ule i64 %team, 1
  %small = icmp ult i64 %total, {programs}
  %serial = or i1 %single, %small
  br i1 %serial, label %alone, label %together
alone:
  call void @range(ptr %arguments, i64 0, i64 %total, i32 %gx, i32 %gy, i32 %gz)
  ret void
together:
  store ptr %arguments, ptr %grid
  %ptotal = getelementptr %grid, ptr %grid, i64 0, i32 1
  store i64 %total, ptr %ptotal
  %px = getelementptr %grid, ptr %grid, i64 0, i32 2
  store i32 %gx, ptr %px
  %py = getelementptr %grid, ptr %grid, i64 0, i32 3
  store i32 %gy, ptr %py
  %pz = getelementptr %grid, ptr %grid, i64 0, i32 4
  store i32 %gz, ptr %pz
  %team32 = trunc i64 %team to i32
  call void @GOMP_parallel(ptr @worker, ptr %grid, i32 %team32, i32 0)
  ret void
}}
"""
