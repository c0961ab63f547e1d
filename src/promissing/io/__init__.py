"""Read tables from files, describe their missing values, and define the prediction task."""

from promissing.io.description import describe, find_suspects, is_identifier, reads_as
from promissing.io.files import (
    FileError,
    atomic_write,
    check_target,
    read_table,
    write_bytes,
    write_table,
    write_text,
)
from promissing.io.task import PredictionTask, define_task, read_modalities

__all__ = [
    "FileError",
    "PredictionTask",
    "atomic_write",
    "check_target",
    "define_task",
    "describe",
    "find_suspects",
    "is_identifier",
    "read_modalities",
    "read_table",
    "reads_as",
    "write_bytes",
    "write_table",
    "write_text",
]
