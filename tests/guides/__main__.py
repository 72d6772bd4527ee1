"""Runs the commands of the guides, and compares their output with the output on the pages.

The guides are the Markdown files in adapters/suite/src/guide, in the order of its mod.rs. Every `sh` block is run, in one shell
against one server. If the next block is `json` or `text`, it is the expected output: `...` stands for anything, and ids, times,
ports and random text are equal to all others. A `json` block is a subset: its values occur in the output in this order,
possibly with more members. Every `console` block of operations.md is a session with servers of its own; see console.py.

Usage: tests/guides/run PROGRAM, where PROGRAM is the path of core-server. The folder of PROGRAM must have core-cli too; it
is first on PATH. CORE_TEST_POSTGRES_URL and CORE_TEST_MOTO are those of tests/run.
"""

import os
import sys

from console import run_console_blocks
from shell import run_shell_blocks


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    program = os.path.abspath(sys.argv[1])
    for kind, run in (("sh", run_shell_blocks), ("console", run_console_blocks)):
        count, failed = run(program)
        for text in failed:
            print(f"== {text}")
        if failed:
            sys.exit(f"{len(failed)} of {count} {kind} blocks failed")
        print(f"-- {count} {kind} blocks had the output of the guides")


if __name__ == "__main__":
    main()
