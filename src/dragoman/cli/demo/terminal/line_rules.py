"""Rules about single lines of shell, JavaScript and C: what to look for, what is wrong, what to write instead."""

import re
from collections.abc import Sequence
from typing import Final

Rules = Sequence[tuple[re.Pattern[str], str, str]]


def _rules(*rules: tuple[str, str, str]) -> Rules:
    return tuple((re.compile(sign), fault, instead) for sign, fault, instead in rules)


SHELL_RULES: Final = _rules(
    (
        r"\brm\s+(?:-\w+\s+)*-\w*r\w*.*\s\"?\$\{?\w+\}?\"?/(?:\*|\s|$)",
        "an empty variable would make this rm -r delete /",
        'Write "${variable:?}/…", which stops when it is empty',
    ),
    (
        r"\brm\s+(?:-\S+\s+)*\$\w",
        "the variable is not quoted: a name with a space is taken for two files",
        'Write rm -- "$variable"',
    ),
    (
        r"\bfor\s+\w+\s+in\s+(?:\$\(|`)\s*ls\b",
        "names with spaces are torn apart when ls is read by for",
        "Write for file in ./*; do",
    ),
    (
        r"\bfor\s+\w+\s+in\s+(?:\$\(|`)\s*(?:cat|find)\b",
        "the output is split at spaces, not at lines",
        "Write while IFS= read -r line; do … done < file",
    ),
    (
        r"\[\s+(?:!\s+)?(?:-\w\s+)?\$\{?\w+\}?\s",
        "an unquoted variable in [ ] breaks when it is empty or has spaces",
        'Write [[ "$variable" … ]]',
    ),
    (r"\[\s+[^]]*\s==\s", "== inside [ ] is no POSIX", "Write = inside [ ], or use [[ ]]"),
    (
        r"\[\[?\s+\S+\s+[<>]\s+\S+\s+\]",
        "< and > compare as text here, and inside [ ] they even redirect",
        "Write -lt and -gt, or (( a < b ))",
    ),
    (
        r"^if\s+\[[^\s\[]",
        "there is no space after [, so the shell looks for a command of that name",
        "Write [ with a space behind it",
    ),
    (r"^\w+\s+=\s", "an assignment has no spaces around =", "Write name=value"),
    (r"^\$\w+=", "an assignment names the variable without $", "Write name=value"),
    (r"^cd\s+[^;&|]+$", "when cd fails, what follows runs in the wrong folder", "Write cd … || exit 1"),
    (r"\bread\s+(?!.*-\w*r)\w", "read without -r swallows backslashes", "Write IFS= read -r name"),
    (
        r"\bcat\s+[^|<>&;\s-]\S*\s*\|\s*(?:grep|awk|sed|head|tail|wc|sort)\b",
        "cat is not needed here",
        "Give the file to the command itself",
    ),
    (r"\bgrep\b[^|]*\|\s*wc\s+-l", "grep counts by itself", "Write grep -c"),
    (r"`[^`]+`", "backticks cannot be nested and are easily overlooked", "Write $(…)"),
    (r"\beval\s", "eval runs whatever its text holds", "Use an array for a command and its arguments"),
    (
        r"\bcurl\b[^|]*\|\s*(?:sudo\s+)?(?:ba)?sh\b",
        "what was downloaded is run unseen",
        "Save it, read it, then run it",
    ),
    (
        r"\bchmod\s+(?:-R\s+)?0?777\b",
        "everybody may change it now",
        "Give only the rights that are needed, such as 755 or 640",
    ),
    (r"\b(?:ps\b[^|]*\|\s*grep)\b", "grep finds itself in the list of processes", "Use pgrep"),
)

JAVASCRIPT_RULES: Final = _rules(
    (
        r"<=\s*\w+(?:\.\w+)*\.length\b(?!\s*-)",
        "the loop goes one step too far: the last index is length - 1",
        "Write < in place of <=",
    ),
    (r"\bif\s*\(\s*[\w.]+\s*=(?!=|>)", "this assigns, it does not compare", "Write ==="),
    (r"(?<![=!<>])==(?!=)", "== converts types before it compares", "Write ==="),
    (r"!=(?!=)", "!= converts types before it compares", "Write !=="),
    (r"===?\s*NaN\b", "nothing is equal to NaN, not even NaN", "Write Number.isNaN(value)"),
    (r"\bvar\s+\w", "var is visible in the whole function", "Write const or let"),
    (
        r"\bfor\s*\([^)]*\bin\b",
        "for…in goes through keys, as text and inherited ones too",
        "Write for (const item of list)",
    ),
    (r"\bparseInt\(\s*[^,()]+\)", "parseInt without a base", "Write parseInt(text, 10)"),
    (r"\.forEach\(\s*async\b", "forEach does not wait for async functions", "Use for…of with await, or Promise.all"),
    (r"\.innerHTML\s*\+?=", "text put into innerHTML is run as HTML", "Use textContent"),
    (r"\beval\(", "eval runs whatever its text holds", "Parse the text instead"),
    (r"\.sort\(\s*\)", "sort without a function orders numbers as text", "Write sort((a, b) => a - b) for numbers"),
    (r"catch\s*\([^)]*\)\s*\{\s*\}", "the error is swallowed", "Handle it, or let it through"),
)

C_RULES: Final = _rules(
    (r"\bgets\s*\(", "gets cannot know how large the buffer is", "Write fgets(buffer, sizeof buffer, stdin)"),
    (
        r"\b(?:strcpy|strcat|sprintf)\s*\(",
        "it writes past the end when the text is longer than the buffer",
        "Write snprintf with the buffer's size",
    ),
    (
        r"\bscanf\s*\(\s*\"[^\"]*%s",
        "%s without a width writes past the end of the buffer",
        'Write a width, such as "%99s"',
    ),
    (
        r"\bscanf\s*\(\s*\"[^\"]*%[df]\s*\"\s*,\s*[a-zA-Z_]",
        "scanf needs the address of the variable",
        "Write &variable",
    ),
    (r"\bif\s*\(\s*\w+\s*=(?!=)", "this assigns, it does not compare", "Write =="),
    (
        r"\bfor\s*\([^;]*;[^;]*<=\s*(?:sizeof|strlen|n\b|len\b|length\b|size\b)",
        "the loop goes one step too far if this counts elements from 0",
        "Write < in place of <=",
    ),
    (
        r"\bfor\s*\([^)]*\)\s*;\s*$|\bif\s*\([^)]*\)\s*;\s*$",
        "the semicolon ends the statement: what follows is not part of it",
        "Remove the semicolon",
    ),
    (
        r"\bmalloc\s*\(\s*strlen\s*\([^)]*\)\s*\)",
        "there is no room for the final zero byte",
        "Write malloc(strlen(text) + 1)",
    ),
    (r"\bprintf\s*\(\s*[a-zA-Z_]\w*\s*\)", "a text with % in it is taken for a format", 'Write printf("%s", text)'),
    (
        r"\breturn\s*&\s*\w+\s*;",
        "if this is a local variable, its address is void after the return",
        "Return the value, or memory of the caller",
    ),
    (r"\bvoid\s+main\s*\(", "main returns an int", "Write int main(void)"),
)
