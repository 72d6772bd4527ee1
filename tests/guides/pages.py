"""The pages of the guides, and the comparison of an output with the one on a page."""

import json
import pathlib
import re

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent.parent
GUIDES = REPOSITORY / "adapters/suite/src/guide"

REST = object()  # `...` in a list or object: there may be more.
WORD = re.compile(r'\s*("(?:[^"\\]|\\.)*"|\.\.\.|[{}\[\]:,]|[^\s{}\[\]:,"]+)')

# Text that differs between two runs.
RANDOM = [
    re.compile(r"\d{4}-\d\d-\d\dT[0-9:.]+Z"),
    re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[^\"\n]*\.\.\."),  # an id that the page cuts short
    re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}"),
    re.compile(r"(?<![A-Za-z0-9])[A-Za-z0-9]{8}-[A-Za-z0-9]{8}(?![A-Za-z0-9])"),  # a backup code
    re.compile(r"(?<![A-Z])[A-Z]{4}-[A-Z]{4}(?![A-Z])"),  # a code of a device
    re.compile(r"(?<=core-verification=)\S+|(?<=whsec_)\S+"),
    re.compile(r"[0-9a-f]{8,}"),
    re.compile(r"(?<=:)\d{4,5}\b"),
]


def without_random(text):
    for pattern in RANDOM:
        text = pattern.sub("#", text)
    return text


def guides():
    names = re.search(r"^guides! \{(.*?)\}", (GUIDES / "mod.rs").read_text(), re.S | re.M)[1].split()
    assert names, "mod.rs lists no guides"
    return names


def blocks(page):
    """Yields the language and the text of each code block."""
    for found in re.finditer(r"^```(\S*)\n(.*?)^```$", page, re.S | re.M):
        yield found[1], found[2]


def parse_values(text):
    """Reads JSON values with `...` for what is left out."""
    words, at = [], 0
    while (found := WORD.match(text, at)) is not None:
        words.append(found[1])
        at = found.end()
    assert not text[at:].strip(), f"not JSON: {text[at:]}"
    words.reverse()

    def value():
        word = words.pop()
        if word == "...":
            return REST
        if word == "[":
            items = []
            while words[-1] != "]":
                items.append(value())
                if words[-1] == ",":
                    words.pop()
            words.pop()
            return items
        if word == "{":
            members = {}
            while words[-1] != "}":
                key = value()
                if key is REST:
                    members[REST] = None
                else:
                    assert words.pop() == ":", f"no colon after {key}"
                    members[key] = value()
                if words[-1] == ",":
                    words.pop()
            words.pop()
            return members
        return json.loads(word)

    values = []
    while words:
        values.append(value())
    return values


def contains(actual, expected):
    """Returns whether an actual JSON value has everything of an expected one."""
    if expected is REST:
        return True
    if isinstance(expected, dict):
        return isinstance(actual, dict) and all(
            key is REST or (key in actual and contains(actual[key], member)) for key, member in expected.items()
        )
    if isinstance(expected, list):
        if not isinstance(actual, list):
            return False
        wanted = [item for item in expected if item is not REST]
        if len(wanted) == len(expected) and len(actual) != len(wanted):
            return False
        return is_subsequence(actual, wanted)
    if isinstance(expected, str):
        return isinstance(actual, str) and ("..." in expected or without_random(actual) == without_random(expected))
    if isinstance(expected, int) and not isinstance(expected, bool) and expected > 10**9:
        return isinstance(actual, int)  # a time
    return actual == expected


def is_subsequence(actual, expected):
    rest = iter(actual)
    return all(any(contains(item, wanted) for item in rest) for wanted in expected)


def json_values(text):
    decoder, values, at = json.JSONDecoder(), [], 0
    while at < len(text):
        start = re.compile(r"[{\[]").search(text, at)
        if start is None:
            break
        try:
            found, at = decoder.raw_decode(text, start.start())
            values.append(found)
        except json.JSONDecodeError:
            at = start.start() + 1
    return values


def normal(line):
    """Returns a line without numbers, durations and random text, and with single spaces."""
    return re.sub(r"\s+", " ", re.sub(r"\d+(\.\d+)?(ns|µs|ms|s)?\b", "#", without_random(line))).strip()


def has_lines(output, expected):
    """Returns whether an output has all expected lines in this order, possibly with more lines between them."""
    rest = (normal(line) for line in output.splitlines())
    for line in filter(lambda line: line != "...", expected.splitlines()):
        pattern = re.escape(normal(line)).replace(re.escape("..."), ".*")
        if not any(re.fullmatch(pattern, found) for found in rest):
            return False
    return True


def is_expected(language, expected, output):
    if language == "lines":
        return has_lines(output, expected)
    if language == "json":
        return is_subsequence(json_values(output), parse_values(expected))
    plain = lambda text: re.sub(r"\d+", "#", re.sub(r"\s", "", without_random(text)))
    rest, expected = plain(output), re.sub(r"[0-9a-f]{8}-([0-9a-f]{4}-)?\.\.\.", "...", expected)
    # A line that is left out may follow a full stop.
    parts = re.split(r"^\.\.\.$", expected, flags=re.M)
    for piece in filter(None, (piece for part in parts for piece in plain(part).split("..."))):
        before, found, rest = rest.partition(piece)
        if not found:
            return False
    return True
