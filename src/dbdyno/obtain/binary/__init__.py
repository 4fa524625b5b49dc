"""What a built program or library holds: read from its ELF file alone, which is never run."""

from dbdyno.obtain.binary.read import read_code, read_pair

__all__ = ["read_code", "read_pair"]
