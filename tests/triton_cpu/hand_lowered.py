"""Hand-written LLVM IR in place of the lowering, so that everything around it can be tested by itself."""

from dataclasses import dataclass

import triton_cpu.lower


@dataclass
class HandLowering:
    """A stand-in for `triton_cpu.lower.lower_module` that returns fixed IR and counts its calls."""

    llvm_ir: str
    name: str
    argument_types: tuple[str, ...]
    uses_tiles: bool = False
    calls: int = 0
    ttir: str = ""

    def __call__(self, ttir, options):
        self.calls += 1
        self.ttir = ttir
        return self

    def install(self) -> "HandLowering":
        """Replace the lowering of this process for good; in a test use the fixture `lowering` instead."""
        triton_cpu.lower.lower_module = self
        return self


def spy(slots: int) -> str:
    """IR of a kernel that copies its argument block, the grid and the thread count to where argument 0 points."""
    return f"""
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define void @launch(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads) {{
  %out = load ptr, ptr %arguments
  call void @llvm.memcpy.p0.p0.i64(ptr %out, ptr %arguments, i64 {8 * slots}, i1 false)
  %rest = getelementptr i8, ptr %out, i64 {8 * slots}
  store i32 %x, ptr %rest
  %py = getelementptr i32, ptr %rest, i64 1
  store i32 %y, ptr %py
  %pz = getelementptr i32, ptr %rest, i64 2
  store i32 %z, ptr %pz
  %pt = getelementptr i32, ptr %rest, i64 3
  store i32 %threads, ptr %pt
  ret void
}}
"""


# Each thread of a team adds 1 to the counter at argument 0.
TEAM_COUNTER = """
declare void @GOMP_parallel(ptr, ptr, i32, i32)
define internal void @body(ptr %counter) {
  %old = atomicrmw add ptr %counter, i32 1 seq_cst
  ret void
}
define void @launch(ptr %arguments, i32 %x, i32 %y, i32 %z, i32 %threads) {
  %counter = load ptr, ptr %arguments
  %serial = icmp eq i32 %threads, 1
  br i1 %serial, label %one, label %many
one:
  call void @body(ptr %counter)
  ret void
many:
  call void @GOMP_parallel(ptr @body, ptr %counter, i32 %threads, i32 0)
  ret void
}
"""
