"""Faults in Python code, seen in its syntax tree. What cannot be parsed is told as the parser tells it."""

import ast
import builtins
import textwrap
from collections.abc import Callable, Iterator
from typing import Final

from dragoman.cli.demo.terminal.remarks import Remark

_BUILTINS: Final = frozenset(dir(builtins)) - {"_"}
_SHADOWED: Final = frozenset(
    {"list", "dict", "str", "int", "id", "type", "input", "sum", "max", "min", "file", "set", "filter"}
)


def look_at_python(code: str) -> list[Remark]:
    """What is wrong with it."""
    try:
        tree = ast.parse(textwrap.dedent(code))
    except SyntaxError as error:
        hint = "Check the line before it, too: a bracket or colon may be missing there"
        return [Remark(error.lineno or 1, f"this is no Python: {error.msg}", hint)]
    except (ValueError, RecursionError, MemoryError):
        return [Remark(1, "this cannot be parsed", "Send a smaller piece, without null characters")]
    return list({remark: None for node in ast.walk(tree) for look in LOOKS for remark in look(node)})


def _defaults(node: ast.AST) -> Iterator[Remark]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
        for default in (*node.args.defaults, *node.args.kw_defaults):
            if isinstance(default, ast.List | ast.Dict | ast.Set):
                fault = "the default is made once and shared by all calls"
                yield Remark(default.lineno, fault, "Use None as the default, and make a new one inside")


def _excepts(node: ast.AST) -> Iterator[Remark]:
    if not isinstance(node, ast.ExceptHandler):
        return
    if node.type is None:
        fault = "a bare except catches even KeyboardInterrupt and SystemExit"
        yield Remark(node.lineno, fault, "Name the exceptions that you expect")
    if all(isinstance(each, ast.Pass) for each in node.body):
        yield Remark(node.lineno, "the error is swallowed", "Handle it, or at least log it")


def _comparisons(node: ast.AST) -> Iterator[Remark]:
    if not isinstance(node, ast.Compare):
        return
    for operation, right in zip(node.ops, node.comparators, strict=True):
        if isinstance(right, ast.Constant) and right.value is None and isinstance(operation, ast.Eq | ast.NotEq):
            yield Remark(node.lineno, "None is compared by ==", "Write is None, or is not None")
        literal = (
            isinstance(right, ast.Constant) and isinstance(right.value, int | str) and right.value not in (True, False)
        )
        if literal and isinstance(operation, ast.Is | ast.IsNot):
            yield Remark(node.lineno, "is compares identity, not value", "Write == or !=")


def _loops(node: ast.AST) -> Iterator[Remark]:
    if isinstance(node, ast.While) and _is_true(node.test) and not _leaves(node):
        yield Remark(node.lineno, "this loop never ends", "Add a condition, a break or a return")
    if isinstance(node, ast.While):
        yield from _stuck(node)
    if not isinstance(node, ast.For):
        return
    if isinstance(node.iter, ast.Name):
        for inner in ast.walk(node):
            if isinstance(inner, ast.stmt | ast.expr) and _changes(inner, node.iter.id):
                fault = f"{node.iter.id} is changed while it is walked through, so elements are skipped"
                yield Remark(inner.lineno, fault, f"Walk through a copy: for … in list({node.iter.id})")
    length = _length_in_range(node.iter)
    if length is not None and isinstance(node.target, ast.Name):
        yield from _beyond(node, node.target.id, length)
    if any(isinstance(each, ast.Return) for each in node.body):
        fault = "the loop ends with its first round: this return stands directly in its body"
        yield Remark(node.lineno, fault, "Move the return behind the loop, or below an if")


def _stuck(node: ast.While) -> Iterator[Remark]:
    """`while i < n` where nothing in the body changes i, n or anything else that the condition looks at."""
    if not isinstance(node.test, ast.Compare) or _leaves(node):
        return
    parts = [node.test.left, *node.test.comparators]
    names = {part.id for part in parts if isinstance(part, ast.Name)}
    if not names or not all(isinstance(part, ast.Name | ast.Constant) for part in parts):
        return
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and inner.id in names and isinstance(inner.ctx, ast.Store):
            return
    fault = f"nothing in the loop changes {' or '.join(sorted(names))}, so it never ends"
    yield Remark(node.lineno, fault, "Change it in the body, such as i += 1")


def _beyond(node: ast.For, index: str, sequence: str) -> Iterator[Remark]:
    for inner in ast.walk(node):
        if (
            isinstance(inner, ast.Subscript)
            and isinstance(inner.value, ast.Name)
            and inner.value.id == sequence
            and isinstance(inner.slice, ast.BinOp)
            and isinstance(inner.slice.op, ast.Add)
            and isinstance(inner.slice.left, ast.Name)
            and inner.slice.left.id == index
        ):
            fault = f"in the last round {sequence}[{ast.unparse(inner.slice)}] is beyond the end"
            yield Remark(inner.lineno, fault, f"Let the range end earlier: range(len({sequence}) - 1)")


def _calls(node: ast.AST) -> Iterator[Remark]:
    if not isinstance(node, ast.Call):
        return
    name = node.func.id if isinstance(node.func, ast.Name) else None
    if name in ("eval", "exec"):
        yield Remark(node.lineno, f"{name} runs whatever its text holds", "Use ast.literal_eval for values")
    runs_sql = isinstance(node.func, ast.Attribute) and node.func.attr in ("execute", "executemany")
    if runs_sql and node.args and isinstance(node.args[0], ast.JoinedStr | ast.BinOp):
        fault = "SQL put together from values can be made to say something else"
        yield Remark(node.lineno, fault, "Give the values as parameters")
    if any(each.arg == "shell" and _is_true(each.value) for each in node.keywords):
        fault = "with shell=True the text is read by a shell"
        yield Remark(node.lineno, fault, "Give the command and its arguments as a list")
    if name == "range" and len(node.args) == 1 and isinstance(node.args[0], ast.BinOp):
        size = node.args[0]
        if isinstance(size.op, ast.Add) and isinstance(size.left, ast.Call) and _name(size.left.func) == "len":
            yield Remark(node.lineno, "the range goes one step too far", f"Write range({ast.unparse(size.left)})")


def _assignments(node: ast.AST) -> Iterator[Remark]:
    if isinstance(node, ast.Assign):
        value = node.value
        if isinstance(value, ast.Call) and _name(value.func) == "open":
            yield Remark(node.lineno, "the file is not closed when something fails", "Write with open(…) as file:")
        for target in node.targets:
            if isinstance(target, ast.Name) and target.id in _SHADOWED & _BUILTINS:
                fault = f"{target.id} hides the built-in of that name"
                yield Remark(node.lineno, fault, f"Call it {target.id}_ or, better, by what it holds")


def _divisions(node: ast.AST) -> Iterator[Remark]:
    """sum(x) / len(x) in a function that never asks whether x is empty."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return
    asks = any(isinstance(inner, ast.If | ast.IfExp | ast.Assert | ast.Try) for inner in ast.walk(node))
    for inner in ast.walk(node):
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div | ast.FloorDiv) and not asks:
            right = inner.right
            if isinstance(right, ast.Call) and _name(right.func) == "len":
                fault = "an empty sequence makes this a division by zero"
                yield Remark(inner.lineno, fault, "Say first what the answer is when there is nothing")


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and bool(node.value)


def _leaves(node: ast.While) -> bool:
    leaving = ast.Break | ast.Return | ast.Raise | ast.Yield | ast.YieldFrom | ast.Await
    return any(isinstance(inner, leaving) for inner in ast.walk(node))


def _changes(node: ast.AST, name: str) -> bool:
    """Whether a node takes something out of the list of that name, or puts something into it."""
    if isinstance(node, ast.Delete):
        return any(isinstance(each, ast.Subscript) and _name(each.value) == name for each in node.targets)
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    return node.func.attr in ("remove", "pop", "append", "insert", "clear") and _name(node.func.value) == name


def _length_in_range(node: ast.expr) -> str | None:
    """`items` of range(len(items))."""
    if isinstance(node, ast.Call) and _name(node.func) == "range" and len(node.args) == 1:
        inner = node.args[0]
        if isinstance(inner, ast.Call) and _name(inner.func) == "len" and len(inner.args) == 1:
            return _name(inner.args[0])
    return None


def _name(node: ast.AST) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


LOOKS: Final[tuple[Callable[[ast.AST], Iterator[Remark]], ...]] = (
    _defaults, _excepts, _comparisons, _loops, _calls, _assignments, _divisions,
)  # fmt: skip
