"""Removes what copying from a terminal or an issue adds: fences, quotes, prompts, boxes, boxes to
tick, dots for rows that are left out, and the encoding of a mail.
"""

from __future__ import annotations

import re
from binascii import a2b_qp
from itertools import pairwise

from memdiag.recording.inputs.php_dumps import with_dumped_names
from memdiag.recording.inputs.python_session import with_names
from memdiag.recording.inputs.shell_session import with_commands_names, with_lists
from memdiag.recording.inputs.table_titles import with_titles

_FENCE = re.compile(
    rb"\s*(?:```|~~~)[ \w+-]*\s*|\s*</?(?:details|summary|pre|code|p|br)>.*"
    rb"|\s*\[/?(?:code|quote|pre)(?:=[^\]]*)?\]\s*"  # BBCode
)
# The types of a tibble's columns, below their names, and its size above; the size of a frame in
# pandas.
_FRAME = re.compile(
    rb"\s*(?:<(?:chr|dbl|int|num|lgl|fct|fctr|ord|date|dttm|time|drtn|list|cplx|raw)>\s*)+"
    rb"|\s*# A tibble: .*|\s*\[[0-9]+ rows x [0-9]+ columns\]\s*"
)
# Julia's data frames: ` Row │ iter  rss_MiB`, the types below the names, and `  1 │   10   1140.9`.
_BAR = rb"(?:\||\xe2\x94\x82)"
_JULIA_ROW = re.compile(rb"\s*(?:Row|[0-9]+)? *" + _BAR + rb" ?(.*)")
_JULIA_NAMES = re.compile(rb"\s*Row " + _BAR)
_JULIA_TYPES = re.compile(rb"\s*" + _BAR + rb" *(?:[A-Z][A-Za-z0-9{}.]*\??(?: +|$))+")
_DOTS = re.compile(rb"\s*\.{2,}(?:\s+\.{2,})*\s*")
# Perhaps a quote in a quote, `>> `, but no prompt of Python, `>>> `.
_QUOTE = re.compile(rb"\s{0,3}>(?!>>) ?>{0,1}(?!>) ?")
# Not `# `, which is both a root prompt and a comment.
_PROMPT = re.compile(
    rb"(?:"
    rb"(?:\([\w.-]+\) ?)*\$ +\S"  # (env) $ ps -o rss= -p 4711
    rb"|(?:iex|irb)\([^)]*\)[:0-9]*[>*] "  # Elixir, Ruby
    rb"|>>> |\.\.\.(?: |$)|In \[[0-9]*\]: "  # Python, IPython
    rb"|PS [A-Z]:\\[^>]*> ?|[A-Z]:\\[^>]*>"  # PowerShell, cmd
    rb"|> [A-Za-z.][\w.:]*\(.*[)}]\s*$"  # R
    rb"|\(lldb\) \S|(?:[A-Za-z][\w.()@-]{0,32}[=:0-9]{0,4})?> \(.*\)\s*$"  # lldb, Lisp
    rb"|(?:\([\w.-]+\) ?)*[\w.-]+@[\w.-]+[: ][^$#%]{0,80}[$#%] "  # (env) me@host:~/job$
    rb")"
)
# A row of LaTeX's `tabular`, and what stands between rows.
_TEX_ROW = re.compile(rb"[^&\n]*&[^\n]*\\\\[ \t]*(?:\\hline)?[ \t]*")
_TEX_MARKUP = re.compile(
    rb"\\(?:textbf|textit|num|SI)\b|[{}$]|\\(?=[%_#&])|\\\\(?:\s*\\hline)?\s*$"
)
# siunitx: `\SI{2.81}{\giga\byte}`.
_SIUNITX = re.compile(
    rb"\\(?:SI|qty)\{([0-9.,]+)\}\{\\(kilo|mega|giga|tera|kibi|mebi|gibi|tebi)\\byte\}"
)
_TEX_RULE = re.compile(rb"\s*\\(?:hline|(?:top|mid|bottom)rule|(?:begin|end)\{\w+\*?\}.*)\s*")
# A box to tick in an item of a list, `- [x] `, `3. [ ] `, `✅ `, and whether it is ticked.
_TICK = "(?:✅|☑|✔)(?:\N{VARIATION SELECTOR-16})?"
_BOX = re.compile(
    rf"(\s{{0,12}}(?:[-*+]\s+|[0-9]{{1,3}}[.)]\s+)?)"
    rf"(?:(\[[xX]\]|{_TICK}|:white_check_mark:)|\[ \]|☐|⬜)\s+".encode()
)
_RESULT = re.compile(rb"^Out\[[0-9]+\]: ?")
# What R's reprex prints below a line of code, which has no amounts itself. Heuristic: the share.
_REPREX = re.compile(rb"#> ?")
_REPREX_AT_LEAST, _REPREX_SHARE = 3, 0.25
_AMOUNT = re.compile(rb"[0-9] ?[KMGT]i?B\b")
_QUOTED = 0.6
_CALL = re.compile(rb"> [A-Za-z.][\w.:]*\(.*[)}]\s*$")
_ANSWER = re.compile(rb"\s*(?:\[1\] +)?[0-9][0-9.]*(?: ?[KMGT]i?B)?\s*")
_ANSWERS_AT_LEAST = 3
# The half of the day before the time, in Chinese, Japanese and Korean.
_HALVES = {"上午": "AM", "午前": "AM", "오전": "AM", "下午": "PM", "午後": "PM", "오후": "PM"}
_HALF = re.compile(f"({'|'.join(_HALVES)}) ?([0-9]{{1,2}}:[0-9]{{2}}(?::[0-9]{{2}})?)".encode())
# Of Emacs' Org mode: `[2025-03-04 Tue 09:20]`, `<2025-03-04 Di.>`.
_ORG_TIME = re.compile(
    rb"[\[<]((?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}) [^\s0-9\]>]{2,12}((?: [0-9]{1,2}:[0-9]{2})?)[\]>]"
)
# Of a mail as it is sent: `mem=3D812MB`, and lines that are cut behind `=`.
_QUOTED_PRINTABLE = re.compile(
    rb"(?mi)^Content-Transfer-Encoding:[ \t]{0,8}quoted-printable[ \t\r]*$"
)
_HEADERS_WITHIN = 1 << 16
_NEWLINE = re.compile(rb"(?<!\\)(?:\\r)?\\n")
_NEWLINES_AT_LEAST = 8
# Of Windows: `ReportHost.exe (5120) consumed 9276661760 bytes, sqlservr.exe (2216) consumed ...`.
_CONSUMED = re.compile(
    rb"([\w.-]{1,64}) \([0-9]{1,10}\)\s{1,40}consumed\s{1,40}([0-9]{1,19})\s{1,40}bytes"
)
# A row of a table in Typst: `[1], [11.5], [38.5],`.
_TYPST_ROW = re.compile(rb"\s{0,16}\[[^][\n]*\](?:,\s{0,8}\[[^][\n]*\]){1,64},?\s{0,8}")
_TYPST_CELL = re.compile(rb"\[([^][\n]*)\]")
_ESCAPES = re.compile(rb"\x1b(?:\[[0-9;?]*[A-Za-z]|\([A-Z0-9])")


# Tables in box drawing characters, as rich prints them: bars, rules, and outer borders.
_BOXED = re.compile(r"(?m)^\s*[│┃║]")
_BOXED_LINES_AT_LEAST = 3
_AS_ASCII = str.maketrans(
    dict.fromkeys("│┃║┆┇┊┋├┼┤┝┿┥┠╂┨┡╇┩┣╋┫╞╪╡╟╫╢╠╬╣", "|")
    | dict.fromkeys("─━═┄┅┈┉╌╍", "-")
    | dict.fromkeys("┌┬┐└┴┘┏┳┓┗┻┛╔╦╗╚╩╝╭╮╰╯┕┷┙┍┯┑┖┸┚┎┰┒╘╧╛╒╤╕╙╨╜╓╥╖", " ")
)


def without_escapes(raw: bytes) -> bytes:
    """The text without terminal escape sequences."""
    return _ESCAPES.sub(b"", raw) if b"\x1b" in raw else raw


def unwrapped(text: bytes) -> bytes:
    """The text without these. Their lines stay, empty, so that line numbers do not change, except
    at the start, where readers look for headers.
    """
    text = _CONSUMED.sub(rb"\n\1 memory: \2 bytes", text) if b") consumed" in text else text
    plain = with_lists(_without_boxes(without_escapes(_decoded(text))))
    plain = _ORG_TIME.sub(rb"\1\2", plain)
    lines = _HALF.sub(_with_half_behind, plain).split(b"\n")
    if _is_quoted(lines):
        lines = [_QUOTE.sub(b"", line, count=1) for line in lines]
    lines = _done(_without_row_numbers(lines))
    if any(map(_TYPST_ROW.fullmatch, lines)) and b"table(" in plain:
        lines = [_without_typst(line) for line in lines]
    lines = [_without_tex(line) for line in _named(_only_output(lines))]
    kept = [b"" if _is_wrapping(line) else _RESULT.sub(b"", line) for line in lines]
    if kept == lines:
        return b"\n".join(lines)
    return b"\n".join(kept).lstrip(b"\r\n") or text


def _named(lines: list[bytes]) -> list[bytes]:
    """The lines, with the names of what was called before the numbers below, or of a title above a
    table.
    """
    return with_titles(with_dumped_names(with_names(with_commands_names(lines))))


def _decoded(text: bytes) -> bytes:
    if text.count(b"\\n") >= max(_NEWLINES_AT_LEAST, text.count(b"\n")) and text[:1] not in b"{[":
        text = _NEWLINE.sub(b"\n", text)  # of a text as Python prints it
    is_mail = _QUOTED_PRINTABLE.search(text, 0, _HEADERS_WITHIN) is not None
    return a2b_qp(text) if is_mail else text


def _with_half_behind(found: re.Match[bytes]) -> bytes:
    return found[2] + b" " + _HALVES[found[1].decode()].encode()


def _without_row_numbers(lines: list[bytes]) -> list[bytes]:
    """The lines, of Julia's data frames only the names and the cells."""
    if not any(map(_JULIA_NAMES.match, lines)):
        return lines
    rows = (None if _JULIA_TYPES.fullmatch(line) else _JULIA_ROW.fullmatch(line) for line in lines)
    return [b"" if row is None else row[1] for row in rows]


def _done(lines: list[bytes]) -> list[bytes]:
    """The lines without boxes to tick; those of tasks that are not done only if none is."""
    boxes = {at: found for at, line in enumerate(lines) if (found := _BOX.match(line))}
    are_ticked = any(box[2] for box in boxes.values())
    kept = [*lines]
    for at, box in boxes.items():
        is_done = box[2] or not are_ticked
        kept[at] = box[1] + lines[at][box.end() :] if is_done else b""
    return kept


def _only_output(lines: list[bytes]) -> list[bytes]:
    """The lines, of a reprex only what was printed."""
    printed = sum(_REPREX.match(line) is not None for line in lines)
    if printed < _REPREX_AT_LEAST:
        return lines
    others = [line for line in lines if line.strip() and not _REPREX.match(line)]
    if printed < _REPREX_SHARE * (printed + len(others)) or any(map(_AMOUNT.search, others)):
        return lines
    return [_REPREX.sub(b"", line, count=1) if _REPREX.match(line) else b"" for line in lines]


def _without_tex(line: bytes) -> bytes:
    if b"\\" not in line:
        return line
    if _TEX_RULE.fullmatch(line):
        return b""
    if not _TEX_ROW.fullmatch(line):
        return line
    line = _SIUNITX.sub(rb"\1 \2byte", line)
    return b"|".join(_TEX_MARKUP.sub(b"", cell) for cell in line.split(b"&"))


def _without_typst(line: bytes) -> bytes:
    if _TYPST_ROW.fullmatch(line) is None:
        return line
    return b"|".join(cell.strip(b"*_$ ") for cell in _TYPST_CELL.findall(line))


def _is_quoted(lines: list[bytes]) -> bool:
    filled = [line for line in lines if line.strip()]
    if sum(_QUOTE.match(line) is not None for line in filled) <= _QUOTED * len(filled):
        return False
    answers = (_CALL.match(a) and _ANSWER.fullmatch(b) for a, b in pairwise(filled))
    return sum(map(bool, answers)) < _ANSWERS_AT_LEAST  # of a console of R or Lua


def _is_wrapping(line: bytes) -> bool:
    matches = _FENCE.fullmatch(line) or _FRAME.fullmatch(line) or _DOTS.fullmatch(line)
    matches = matches or _PROMPT.match(line)
    return matches is not None


def _without_boxes(text: bytes) -> bytes:
    """Tables in box drawing characters with bars and rules of ASCII."""
    if b"\xe2\x94" not in text and b"\xe2\x95" not in text:
        return text
    decoded = text.decode("utf-8", errors="surrogateescape")
    if len(_BOXED.findall(decoded)) < _BOXED_LINES_AT_LEAST:
        return text
    return decoded.translate(_AS_ASCII).encode("utf-8", errors="surrogateescape")
