"""The pages' scripts under Node.js: one process answers a whole run's questions."""

from __future__ import annotations

import json
import subprocess
from functools import cache


@cache
def _answering(*command: str) -> subprocess.Popen:
    """A process that answers lines of JSON until its input ends, which is when this one ends."""
    pipe = subprocess.PIPE
    return subprocess.Popen(["node", *command], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


def ask(question, *command):
    """What `node command` answers; AssertionError with its words where it fails."""
    command = tuple(map(str, command))
    process = _answering(*command)
    try:
        process.stdin.write(json.dumps(question) + "\n")
        process.stdin.flush()
        said = process.stdout.readline()
    except BrokenPipeError:
        said = ""
    if not said:
        _answering.cache_clear()  # the next question is not that one's
        raise AssertionError(process.communicate()[1])
    return json.loads(said)
