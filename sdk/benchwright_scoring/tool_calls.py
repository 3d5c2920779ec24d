"""Comparing tool calls: the name, the arguments there, their types and their values."""

import ast
import re
from typing import Any, Dict, List, NamedTuple, Optional, Sequence

from .jsons import NotJson, find_json, parse_json, same_json
from .response import answer_text
from .response import tool_calls as structured_calls

_OPENAI_TYPES = {"dict": "object", "float": "number", "tuple": "array", "hashmap": "object", "arraylist": "array"}
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_STANDARD = re.compile(r"[ ,./\-_*^]")


class Call(NamedTuple):
    """One call: a function's name and its arguments by name. `source` says where it stood in the reply."""

    name: str
    arguments: Dict[str, Any]
    source: str


class Match(NamedTuple):
    """Whether a call is right, and if not, why (one sentence for a person)."""

    ok: bool
    why: str


def safe_name(name: str) -> str:
    """A function name that OpenAI-style interfaces take: letters, digits, `_` and `-`; a dot becomes `_`."""
    return _NAME.sub("_", name)[:64]


def _schema(value: Any) -> Any:
    if isinstance(value, list):
        return [_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    out = {}
    for key, inner in value.items():
        if key == "type" and isinstance(inner, str):
            if inner.lower() == "any":
                continue
            out[key] = _OPENAI_TYPES.get(inner.lower(), inner.lower())
        elif key == "properties" and isinstance(inner, dict):
            out[key] = {name: _schema(prop) for name, prop in inner.items()}
        else:
            out[key] = _schema(inner) if key in ("items", "additionalProperties", "anyOf", "oneOf") else inner
    return out


def openai_tools(functions: Sequence[Dict[str, Any]]) -> List[Dict[str, Any]]:
    """Function descriptions ({"name", "description", "parameters"}) as the `tools` of a chat request.

    Names are made safe; schema types that are not JSON schema ("dict", "float", "tuple", "any") become ones that are.
    """
    tools = []
    for function in functions:
        inner = function.get("function") if isinstance(function.get("function"), dict) else function
        parameters = _schema(inner.get("parameters") or {"type": "object", "properties": {}})
        tool = {"name": safe_name(str(inner.get("name"))), "parameters": parameters}
        if inner.get("description"):
            tool["description"] = inner["description"]
        tools.append({"type": "function", "function": tool})
    return tools


def _arguments(value: Any) -> Optional[Dict[str, Any]]:
    """Arguments as an object; JSON text, even twice encoded, is unwrapped. None when they are nothing of the kind."""
    for _ in range(3):
        if isinstance(value, str):
            try:
                value = parse_json(value) if value.strip() else {}
            except NotJson:
                return None
        else:
            break
    if value is None:
        return {}
    return value if isinstance(value, dict) else None


def read_calls(response: Any) -> List[Call]:
    """The calls of a response: structured tool calls; else JSON in the text ({"name", "arguments"}, a list of them, or
    {name: {…}}); else Python call syntax in the text (`f(a=1)`). An empty list when there is none.

    A structured call whose arguments cannot be read is kept with the argument "?" so that it is wrong, not absent.
    """
    calls = structured_calls(response)
    if calls:
        out = []
        for call in calls:
            arguments = _arguments(call["arguments"])
            if arguments is None:
                arguments = {"?": call["arguments"]}
            out.append(Call(str(call["name"]), arguments, "tool call"))
        return out
    text = answer_text(response)
    if not text.strip():
        return []
    return _json_calls(text) or _python_calls(text)


def _json_calls(text: str) -> List[Call]:
    tagged = re.findall(r"<tool_call>(.*?)</tool_call>", text, re.DOTALL)
    try:
        values = [parse_json(part.strip()) for part in tagged] if tagged else find_json(text)
    except NotJson:
        return []
    out = []
    for value in values if isinstance(values, list) else [values]:
        if not isinstance(value, dict):
            return []
        inner = value.get("function") if isinstance(value.get("function"), dict) else value
        name = inner.get("name")
        if isinstance(name, str):
            raw = next((inner[k] for k in ("arguments", "parameters", "args", "input") if k in inner), {})
        elif len(inner) == 1:
            name, raw = next(iter(inner.items()))
        else:
            return []
        arguments = _arguments(raw)
        if arguments is None:
            return []
        out.append(Call(name, arguments, "JSON in the text"))
    return out


def _python_calls(text: str) -> List[Call]:
    for candidate in [text, *text.split("\n")][:50]:
        stripped = candidate.strip().strip("`").strip()
        if len(stripped) > 20_000 or "(" not in stripped:
            continue
        try:
            node = ast.parse(stripped, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        nodes = node.elts if isinstance(node, (ast.List, ast.Tuple)) else [node]
        calls = [_python_call(item) for item in nodes]
        if calls and all(call is not None for call in calls):
            return [call for call in calls if call is not None]
    return []


def _python_call(node: ast.AST) -> Optional[Call]:
    if not isinstance(node, ast.Call) or node.args:
        return None
    try:
        name = ast.unparse(node.func)
        arguments = {str(k.arg): ast.literal_eval(k.value) for k in node.keywords if k.arg}
    except (ValueError, RecursionError):
        return None
    return Call(name, arguments, "Python call in the text")


def _kind(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return "string"
    if isinstance(value, (list, tuple)):
        return "array"
    return "dict" if isinstance(value, dict) else "null"


_FITS = {
    "string": {"string"},
    "integer": {"integer"},
    "float": {"float", "integer"},
    "number": {"float", "integer"},
    "double": {"float", "integer"},
    "boolean": {"boolean"},
    "array": {"array"},
    "tuple": {"array"},
    "list": {"array"},
    "dict": {"dict"},
    "object": {"dict"},
    "null": {"null"},
}


def standard(value: Any) -> Any:
    """Strings without case, spaces and `,./-_*^`, quotes made alike; lists and objects item by item."""
    if isinstance(value, str):
        return _STANDARD.sub("", value).lower().replace("'", '"')
    if isinstance(value, (list, tuple)):
        return [standard(item) for item in value]
    if isinstance(value, dict):
        return {key: standard(item) for key, item in value.items()}
    return value


def _exactly(got: Any, wanted: Any) -> bool:
    """Equal after `standard`, where a whole number and a float inside a list differ."""
    if isinstance(got, list) and isinstance(wanted, list):
        return len(got) == len(wanted) and all(map(_exactly, got, wanted))
    if isinstance(got, dict) and isinstance(wanted, dict):
        return got.keys() == wanted.keys() and all(_exactly(got[k], wanted[k]) for k in got)
    return _kind(got) == _kind(wanted) and got == wanted


def _accepts_object(got: Dict[str, Any], accepted: Dict[str, Any]) -> bool:
    """An object whose accepted form gives a list of values for each key."""
    if any(key not in accepted for key in got):
        return False
    for key, values in accepted.items():
        values = values if isinstance(values, list) else [values]
        if key not in got:
            if "" not in values:
                return False
        elif not any(_accepts(got[key], value) for value in values):
            return False
    return True


def _accepts(got: Any, wanted: Any) -> bool:
    if isinstance(got, dict) and isinstance(wanted, dict):
        return _accepts_object(got, wanted) or _exactly(standard(got), standard(wanted))
    if isinstance(got, list) and isinstance(wanted, list) and any(isinstance(item, dict) for item in wanted):
        return len(got) == len(wanted) and all(map(_accepts, got, wanted))
    return _exactly(standard(got), standard(wanted))


def accepts(got: Any, accepted: Sequence[Any], type_name: str = "any") -> bool:
    """Whether a value is one of the accepted ones and of the declared type.

    A whole number stands for a float at the top level, not inside a list. `""` among the accepted values means that
    the argument may be left out; given as a value it is accepted too.
    """
    kinds = _FITS.get(type_name.lower())
    if kinds is not None and _kind(got) not in kinds:
        # The accepted list may name a variable or a constant where the schema wants a plain type.
        if not any(_kind(value) == _kind(got) and value != "" for value in accepted):
            return False
    for wanted in accepted:
        if _accepts(got, wanted):
            return True
        if {_kind(got), _kind(wanted)} == {"integer", "float"} and got == wanted:
            return True
    return False


def match_call(
    call: Call, accepted: Dict[str, Dict[str, Sequence[Any]]], function: Optional[Dict[str, Any]] = None
) -> Match:
    """Whether a call is the expected one: {function name: {argument: [accepted values]}}.

    With the function's description the declared types and the required arguments are checked as well. An argument
    that is not expected is wrong; one that is missing is wrong unless `""` is among its accepted values. A value that
    should be a list or an object and came as its JSON text is unwrapped; a string field never becomes a number.
    """
    name, arguments = next(iter(accepted.items()))
    if safe_name(call.name) != safe_name(name):
        return Match(False, f"calls {call.name}, expected {name}")
    parameters = (function or {}).get("parameters") or {}
    properties = parameters.get("properties") or {}
    for required in parameters.get("required") or []:
        if required not in call.arguments:
            return Match(False, f"the required argument {required} is missing")
    for key, value in call.arguments.items():
        if key not in arguments:
            return Match(False, f"the argument {key} is not expected")
        declared = properties.get(key)
        type_name = str(declared.get("type") or "any") if isinstance(declared, dict) else "any"
        if isinstance(value, str) and type_name.lower() in ("array", "tuple", "list", "dict", "object"):
            value = _unwrapped(value)
        if not accepts(value, arguments[key], type_name):
            return Match(False, f"{key} is {value!r:.200}, accepted: {list(arguments[key])!r:.300}")
    for key, values in arguments.items():
        if key not in call.arguments and "" not in values:
            return Match(False, f"the argument {key} is missing")
    return Match(True, "")


def _unwrapped(text: str) -> Any:
    try:
        value = parse_json(text)
    except NotJson:
        return text
    return value if isinstance(value, (list, dict)) else text


def match_calls(
    calls: Sequence[Call],
    accepted: Sequence[Dict[str, Dict[str, Sequence[Any]]]],
    functions: Sequence[Dict[str, Any]] = (),
) -> Match:
    """Whether the calls are the expected ones, in any order, each used once."""
    if len(calls) != len(accepted):
        return Match(False, f"{len(calls)} calls, expected {len(accepted)}")
    by_name = {safe_name(str(f.get("name"))): f for f in functions}
    left, why = list(calls), ""
    for expected in accepted:
        function = by_name.get(safe_name(next(iter(expected))))
        for at, call in enumerate(left):
            match = match_call(call, expected, function)
            if match.ok:
                del left[at]
                break
            why = match.why
        else:
            return Match(False, why or "no call")
    return Match(True, "")


def same_arguments(actual: Any, expected: Dict[str, Any], types: Optional[Dict[str, str]] = None) -> Match:
    """Whether arguments (an object, or its JSON text) are exactly the expected ones, by JSON type and value.

    7 and 7.0 are the same number, "7" is text, and a bool is never a number. `types` (name to JSON schema type) lets a
    list or an object that came as JSON text be unwrapped.
    """
    arguments = _arguments(actual)
    if arguments is None:
        return Match(False, "the arguments are not a JSON object")
    unwrapped = {
        key: _unwrapped(value) if isinstance(value, str) and (types or {}).get(key) in ("array", "object") else value
        for key, value in arguments.items()
    }
    for key in expected:
        if key not in unwrapped:
            return Match(False, f"the argument {key} is missing")
        if not same_json(unwrapped[key], expected[key]):
            return Match(False, f"{key} is {unwrapped[key]!r:.200}, expected {expected[key]!r:.200}")
    extra = sorted(set(unwrapped) - set(expected))
    return Match(not extra, f"the argument {extra[0]} is not expected" if extra else "")
