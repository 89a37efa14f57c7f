"""The directive `api`: public names of the package with signature and docstring, made on building.

    ```{api} softmax_lab softmax_lab.emulator.run
    ```

A package stands for its `__all__`. Docstrings are Markdown, as the rest of the book; a name that
does not exist, or has nothing to say, is an error of the build.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Iterator
from itertools import groupby
from types import ModuleType

from docutils import nodes
from docutils.statemachine import StringList
from sphinx import addnodes
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective

FENCE = "`"


def resolve(name: str) -> tuple[object, ModuleType]:
    """The object that a dotted name stands for, and the module it is public in."""
    try:
        return (module := importlib.import_module(name)), module
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
    try:
        module = importlib.import_module(home)
        return getattr(module, last), module
    except (ImportError, AttributeError, ValueError) as error:
        raise ExtensionError(f"api: there is no {name}: {error}") from error


def public(names: list[str]) -> list[str]:
    """Dotted names, each package replaced by what it lists in `__all__`."""
    out = []
    for name in names:
        found, _ = resolve(name)
        listed = [f"{name}.{each}" for each in getattr(found, "__all__", ())]
        out += (listed or [name]) if inspect.ismodule(found) else [name]
    return out


def docstring(name: str) -> str:
    """What the source says of a name, also of a constant (the string below its assignment)."""
    found, module = resolve(name)
    if callable(found):
        text = inspect.getdoc(found)
    else:
        last = name.rpartition(".")[2]
        homes = [module, *(m for m in vars(module).values() if inspect.ismodule(m))]
        texts = (_constants(home).get(last) for home in homes if getattr(home, last, None) is found)
        text = next(filter(None, texts), None)
    if not text:
        raise ExtensionError(f"api: {name} has no docstring")
    return text.strip()


def _constants(module: ModuleType) -> dict[str, str]:
    docs = ModuleAnalyzer.for_module(module.__name__).find_attr_docs()
    return {name: "\n".join(lines) for (owner, name), lines in docs.items() if not owner}


class _Bare(str):
    """An annotation as the source has it: `inspect` would put it in quotes."""

    __repr__ = str.__str__


def signature(found: object) -> str:
    """Parameters and result as the source has them."""
    held = inspect.signature(found)

    def bare(annotation):
        return _Bare(annotation) if isinstance(annotation, str) else annotation

    parameters = [p.replace(annotation=bare(p.annotation)) for p in held.parameters.values()]
    result = bare(held.return_annotation)
    return str(held.replace(parameters=parameters, return_annotation=result))


def entry(name: str, depth: int = 3) -> str:
    """A name as a directive of Sphinx's Python domain, in Markdown."""
    found, module = resolve(name)
    last, fence = name.rpartition(".")[2], FENCE * (depth + 1)
    kind = "class" if inspect.isclass(found) else "function" if callable(found) else "data"
    head = last + signature(found) if kind == "function" else last
    inner = "".join(members(found)) if kind == "class" else ""
    where = f":module: {module.__name__}\n\n"
    return f"{fence}{{py:{kind}}} {head}\n{where}{docstring(name)}\n\n{inner}{fence}\n\n"


def members(owner: type) -> Iterator[str]:
    """Fields, properties and methods of a class that are for readers."""
    fields = getattr(owner, "__dataclass_fields__", {})
    if fields:
        alike = groupby(fields.values(), key=lambda field: field.type)
        types = "; ".join(
            f"{', '.join(f'`{field.name}`' for field in group)}: `{kind}`" for kind, group in alike
        )
        yield f"Fields: {types}.\n\n"
    for name, value in vars(owner).items():
        if name.startswith("_") or name in fields:
            continue
        kind = "property" if isinstance(value, property) else "method" if callable(value) else ""
        said = inspect.getdoc(value)
        if kind and said:
            head = name if kind == "property" else name + signature(value).replace("self, ", "", 1)
            yield f"```{{py:{kind}}} {head.replace('(self)', '()')}\n\n{said}\n```\n\n"


class Api(SphinxDirective):
    """```{api} names```"""

    required_arguments = 1
    optional_arguments = 100

    def run(self) -> list[nodes.Node]:
        """The entries of all names, in order."""
        text = "".join(entry(name) for name in public(self.arguments))
        where = inspect.getsourcefile(type(self))
        lines = StringList(text.splitlines(), source=where)
        box = nodes.container()
        self.state.nested_parse(lines, self.content_offset, box)
        return box.children


def plain(app, env, node, content):
    """A type in a signature that this book does not describe stays a word."""
    if node.get("refdomain") == "py" and _in_signature(node):
        return content
    return None


def _in_signature(node: nodes.Node | None) -> bool:
    while node is not None:
        if isinstance(node, addnodes.desc_signature):
            return True
        node = node.parent
    return False


def setup(app) -> dict:
    """Registers the directive with Sphinx."""
    app.add_directive("api", Api)
    app.connect("missing-reference", plain)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}
