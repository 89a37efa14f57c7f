"""What nobody should have to read in a page."""

from __future__ import annotations

import re

TEX = re.compile(r"\\[a-zA-Z]+|\\[()\[\]{}]|\$")
"""Marks of a formula that was left as it is typed."""

NEEDS_SCRIPT = re.compile(r"move the slider|press play|\bdrag\b|\bclick|stepper", re.IGNORECASE)
"""What an instruction sounds like that only a script could carry out."""
