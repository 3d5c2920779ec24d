"""Arithmetic expressions, evaluated exactly and safely."""

import ast
import re
from fractions import Fraction
from typing import List, Optional, Sequence, Tuple

_LINE = re.compile(r"answer\s*:\s*(.*)", re.IGNORECASE)


def evaluate(expression: str) -> Tuple[Optional[Fraction], List[int]]:
    """(exact value, the whole numbers used in order) of an expression of + - * / and brackets.

    The value is None when it is anything else, or divides by zero. Never runs code.
    """
    text = expression.replace("×", "*").replace("÷", "/").replace("−", "-").replace("x", "*")
    if len(text) > 500:
        return None, []
    used: List[int] = []

    def walk(node: ast.AST) -> Fraction:
        if isinstance(node, ast.Constant) and type(node.value) is int:
            used.append(node.value)
            return Fraction(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return -walk(node.operand)
        if isinstance(node, ast.BinOp):
            left, right = walk(node.left), walk(node.right)
            if isinstance(node.op, ast.Add):
                return left + right
            if isinstance(node.op, ast.Sub):
                return left - right
            if isinstance(node.op, ast.Mult):
                return left * right
            if isinstance(node.op, ast.Div):
                return left / right
        raise ValueError

    try:
        return walk(ast.parse(text.strip(), mode="eval").body), used
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None, used


def expression_answer(text: str) -> Optional[str]:
    """The expression that a reply gives: of the last line "Answer: …", else the last line; what follows "=" is cut."""
    lines = _LINE.findall(text) or [line for line in text.strip().split("\n") if line.strip()][-1:]
    if not lines:
        return None
    expression = lines[-1].split("=")[0].strip(" \t`*$.")
    return expression or None


def makes(expression: str, numbers: Sequence[int], target: int) -> bool:
    """Whether an expression uses each number exactly once, nothing else, and equals the target."""
    value, used = evaluate(expression)
    return value == target and sorted(used) == sorted(numbers)
