"""Write the JSON Schemas of the documents from the types of their values.

A key's description is what the docstring of its dataclass says of the field: `name: text`.

    python tools/schemas.py           write memdiag/report/*.schema.json
    python tools/schemas.py --check   exit with 1 if one of them is out of date
"""

from __future__ import annotations

import inspect
import json
import re
import sys
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import msgspec

from memdiag.report.formats.json_documents import SCHEMA_VERSION
from memdiag.values import budgets, capacity, comparison, findings, measurements, verdict
from memdiag.values.codec import in_json

FOLDER = Path(__file__).parents[1] / "memdiag" / "report"
_MODULES = (budgets, capacity, comparison, findings, measurements, verdict)
_TYPES = {
    name: kind
    for module in _MODULES
    for name, kind in vars(module).items()
    if isinstance(kind, type) and is_dataclass(kind)
}
_HEAD: dict[str, Any] = {
    "schema_version": {
        "description": "Version of this document; it changes when a key is removed or redefined.",
        "const": SCHEMA_VERSION,
    },
    "exit_code": {
        "description": "The command's exit code.",
        "type": "integer",
        "minimum": 0,
        "maximum": 255,
    },
}
_VERDICT = {
    "description": "The worst verdict of all recordings.",
    "allOf": [{"$ref": "#/$defs/Verdict"}],
}
# Keys that `json_documents` adds to the fields of a type.
_ADDED: dict[str, dict[str, Any]] = {
    "Capacity": {
        "headroom_bytes": {
            "description": "The limit minus the peak; null without a limit.",
            "type": ["number", "null"],
        }
    },
    "PhaseGrowth": {
        "attributed": {"description": "The growth is attributed to this phase.", "type": "boolean"}
    },
}


def schema(kind: type, more: dict[str, Any]) -> dict[str, Any]:
    """The schema of a document: the keys of `kind` and `more`."""
    _, definitions = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    shown = [kind.__name__]
    for name in shown:  # (grows: what is in JSON refers to further definitions)
        definition = definitions[name]
        definition.pop("title", None)
        definition["description"] = _summary(definition["description"])
        if name in _TYPES:
            _complete(definition, _TYPES[name], _ADDED.get(name, {}))
        referred = re.findall(r'"#/\$defs/(\w+)"', json.dumps(definition))
        shown += [other for other in dict.fromkeys(referred) if other not in shown]
    definitions = {name: definitions[name] for name in definitions if name in shown}
    argument = definitions.get("Argument", {"properties": {}})["properties"]
    for key in ("reason", "verdict") if argument else ():
        argument[key] = {
            "description": argument[key]["description"] + " Null if the side is not_considered.",
            "anyOf": [{"type": "null"}, *argument[key]["allOf"]],
        }
    root = definitions.pop(kind.__name__)
    root["properties"] |= more
    root["required"] = sorted(root["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"memdiag {kind.__name__.lower()}",
        **root,
        "$defs": definitions,
    }


def _complete(definition: dict[str, Any], kind: type, more: dict[str, Any]) -> None:
    """Every key is required and described; a number may be null, which is not finite."""
    said = _descriptions(kind)
    properties = {}
    for key in in_json(kind):
        value = _nullable(definition["properties"][key])
        value.pop("default", None)
        if "$ref" in value:
            value = {"allOf": [value]}
        properties[key] = {"description": said[key], **value}
    definition["properties"] = properties | more
    definition["required"] = list(definition["properties"])
    definition["additionalProperties"] = False


def _nullable(value: Any) -> Any:
    if isinstance(value, list):
        return [_nullable(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    if value in ({"type": "number"}, {"anyOf": [{"type": "number"}, {"type": "null"}]}):
        return {"type": ["number", "null"]}
    return {key: _nullable(entry) for key, entry in value.items()}


def _summary(text: str) -> str:
    return inspect.cleandoc(text).split("\n\n")[0].replace("\n", " ")


def _descriptions(kind: type) -> dict[str, str]:
    """What the docstring says of each field. Raises ValueError if it says nothing of one."""
    names = "|".join(field.name for field in fields(kind))
    text = " ".join(inspect.cleandoc(kind.__doc__ or "").split())
    parts = re.split(rf"(?:^|(?<=[.;:!] ))((?:{names})(?:(?:, | and )(?:{names}))*): ", text)
    said = {}
    for heads, told in zip(parts[1::2], parts[2::2], strict=True):
        for name in re.split(", | and ", heads):
            sentence = told.strip().rstrip(";.")
            said[name] = f"{sentence[:1].upper()}{sentence[1:]}."
    lacking = [name for name in in_json(kind) if name not in said]
    if lacking:
        raise ValueError(f"the docstring of {kind.__name__} does not describe {lacking}")
    return said


def texts() -> dict[Path, str]:
    """The files and what they must hold."""
    found = {
        "diagnosis": schema(findings.Diagnosis, {**_HEAD, "verdict": _VERDICT}),
        "comparison": schema(comparison.Comparison, _HEAD),
    }
    return {
        FOLDER / f"{name}.schema.json": json.dumps(one, indent=1) + "\n"
        for name, one in found.items()
    }


def main() -> int:
    stale = [path for path, text in texts().items() if path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv[1:]:
        for path in stale:
            print(f"{path} is out of date: run python tools/schemas.py", file=sys.stderr)
        return int(bool(stale))
    for path, text in texts().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
