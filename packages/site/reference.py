"""Writes docs/api.md, the page of the HTTP interface, from docs/openapi.json."""

import json
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
NOTE = """This page is made from [openapi.json](openapi.json). A running server shows the same at `/docs`, with samples for curl,
TypeScript and Python, and a form to try each call. [asyncapi.yaml](asyncapi.yaml) describes the messages of live audio."""


def on_files(files, config):
    document = json.loads((ROOT / "docs/openapi.json").read_text())
    files.append(File.generated(config, "docs/api.md", content=reference(document)))
    return files


def reference(document):
    parts = ["# HTTP reference", f"Version {document['info']['version']}. {NOTE}", document["info"]["description"]]
    for tag in document["tags"]:
        parts += [f"## {tag['name']}", tag["description"] + "."]
        for path, methods in document["paths"].items():
            for method, operation in methods.items():
                if tag["name"] in operation["tags"]:
                    parts += describe(f"{method.upper()} {path}", operation)
    parts += ["## Webhooks", "What the server sends to the `webhook_url` of a request."]
    for name, methods in document["webhooks"].items():
        parts += describe(name, methods["post"])
    parts.append("## Shapes")
    for name, schema in document["components"]["schemas"].items():
        parts += [heading(name, f"shape-{name}"), schema.get("description", ""), *fields(schema)]
    return "\n\n".join(part for part in parts if part) + "\n"


def describe(title, operation):
    yield heading(title, operation["operationId"])
    yield f"**{operation['summary']}.** {operation.get('description', '')}"
    if operation.get("security") == []:
        yield "Needs no key."
    parameters = operation.get("parameters", [])
    if parameters:
        yield table(
            ["parameter", "in", "type", "meaning"],
            [
                [code(it["name"]), it["in"] + ("" if it.get("required") else ", optional"), type_of(it["schema"]), meaning(it)]
                for it in parameters
            ],
        )
    for media, content in operation.get("requestBody", {}).get("content", {}).items():
        yield f"Body {code(media)}: {type_of(content.get('schema', {}))}"
        yield from fields(content.get("schema", {}))
        yield from example(content)
    answers = operation.get("responses", {})
    if answers:
        yield table(["status", "answer", "body"], [[status, answer["description"], body_of(answer)] for status, answer in answers.items()])
    for answer in answers.values():
        for content in answer.get("content", {}).values():
            yield from example(content)


def heading(title, anchor):
    return f"### {code(title) if '/' in title else title} {{ #{anchor} }}"


def example(content):
    if "example" in content:
        yield f"```json\n{json.dumps(content['example'], indent=2)}\n```"


def body_of(answer):
    return ", ".join(f"{code(media)} {type_of(content.get('schema', {}))}" for media, content in answer.get("content", {}).items())


def fields(schema):
    """The members of an object, or the values of an enum."""
    if "enum" in schema:
        yield ", ".join(code(value) for value in schema["enum"])
    for choice in schema.get("oneOf", schema.get("anyOf", [])):
        yield from fields(choice)
    required = schema.get("required", [])
    rows = [
        [code(name), type_of(field) + ("" if name in required else ", optional"), meaning(field)]
        for name, field in schema.get("properties", {}).items()
    ]
    if rows:
        yield table(["field", "type", "meaning"], rows)


def type_of(schema):
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        return f"[{name}](#shape-{name})"
    if "items" in schema:
        return f"array of {type_of(schema['items'])}"
    for word in ("allOf", "oneOf", "anyOf"):
        if word in schema:
            return (" and " if word == "allOf" else " or ").join(type_of(choice) for choice in schema[word])
    if "properties" in schema:
        return "object with " + ", ".join(code(name) for name in schema["properties"])
    kind = schema.get("type", "any")
    return kind if isinstance(kind, str) else " or ".join(kind)


def meaning(it):
    """The description of a parameter or a field, and its limits."""
    schema = it.get("schema", it)
    parts = [it.get("description", schema.get("description", ""))]
    if "enum" in schema:
        parts.append("One of " + ", ".join(code(value) for value in schema["enum"]) + ".")
    if "minimum" in schema and "maximum" in schema:
        parts.append(f"From {schema['minimum']} to {schema['maximum']}.")
    if "default" in schema:
        parts.append(f"Default {code(json.dumps(schema['default']))}.")
    return " ".join(part for part in parts if part)


def table(head, rows):
    cells = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(" ".join(cell.split()).replace("|", "\\|") for cell in row) + " |" for row in cells)


def code(value):
    return f"`{value}`"
