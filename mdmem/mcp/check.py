"""Whether a tool's arguments fit its schema: the few keywords that our schemas use."""

from __future__ import annotations

from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "boolean": bool,
    "array": list,
    "object": dict,
}
MAX_TEXT = 1_000_000


def problem(value: Any, schema: dict[str, Any], where: str = "") -> str:
    """Return what is wrong in words that help, '' when the value fits."""
    kind = schema.get("type")
    name = where or "the arguments"
    if kind and (not isinstance(value, _TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        return f"{name} must be of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{name} must be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str) and len(value) > MAX_TEXT:
        return f"{name} is longer than {MAX_TEXT} characters"
    if kind == "integer" and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        return f"{name} must be from {schema.get('minimum')} to {schema.get('maximum')}"
    if isinstance(value, list):
        if len(value) > 1000:
            return f"{name} has more than 1000 items"
        for place, item in enumerate(value):
            found = problem(item, schema.get("items", {}), f"{name}[{place}]")
            if found:
                return found
    if isinstance(value, dict):
        return _object(value, schema, where)
    return ""


def _object(value: dict[str, Any], schema: dict[str, Any], where: str) -> str:
    properties = schema.get("properties", {})
    for needed in schema.get("required", ()):
        if needed not in value:
            return f"{needed} is missing"
    more = schema.get("additionalProperties", True)
    for key, item in value.items():
        below = f"{where}.{key}" if where else key
        if key in properties:
            found = problem(item, properties[key], below)
        elif more is False:
            return f"there is no argument {key}; known are {', '.join(properties)}"
        else:
            found = problem(item, more, below) if isinstance(more, dict) else ""
        if found:
            return found
    return ""
