//! The program that runs in each worker, and how it gets there.

/// Its whole text: the wire, what the kernel says, memory, the child that loads NIXL, the parent that ends it.
pub const PROGRAM: &str = concat!(
    include_str!("program/wire.py"),
    include_str!("program/evidence.py"),
    include_str!("program/memory.py"),
    include_str!("program/worker.py"),
    include_str!("program/main.py"),
);

/// What begins each line that the program says.
pub(crate) const MARK: &str = "@check-interconnect@";

/// Reads the program from stdin, its length first, because orders follow on the same stream. The folder in which the
/// engine stands is no place for imports.
pub(crate) const BOOT: &str = r#"import os, sys
if sys.path and sys.path[0] == "":
    del sys.path[0]
head = b""
while not head.endswith(b"\n"):
    part = os.read(0, 1)
    if not part:
        os._exit(0)
    head += part
left, code = int(head), b""
while left > 0:
    part = os.read(0, min(left, 65536))
    if not part:
        os._exit(0)
    code += part
    left -= len(part)
exec(compile(code, "check-interconnect", "exec"), {"__name__": "check_interconnect"})
"#;
