"""Scripts about files: large, old, equal, many, to be searched, changed, kept."""

from dragoman.cli.demo.terminal import reading
from dragoman.cli.demo.terminal.scripts import Script

FOLDER_USAGE = "[FOLDER]"


def large_files(question: str) -> Script:
    """Files above a size; without one, the largest that there are."""
    size = reading.size(question)
    found = "find \"$folder\" -xdev -type f{} -printf '%s\\t%p\\n' 2> /dev/null | sort -rn"
    if size is None:
        count = reading.count(question)
        return Script(
            name="largest-files",
            purpose=f"Lists the {count} largest files below a folder, largest first.",
            usage=FOLDER_USAGE,
            settings=(_folder(question),),
            report=(f"{found.format('')} | head -n {count} | numfmt --field=1 --to=iec",),
            keeps_going=True,
        )
    return Script(
        name="large-files",
        purpose="Lists all files larger than a size below a folder, largest first.",
        usage="[FOLDER] [SIZE]",
        settings=(_folder(question), f'size="${{2:-{size}}}"'),
        report=(found.format(' -size "+$size"') + " | numfmt --field=1 --to=iec",),
        keeps_going=True,
    )


def folder_sizes(question: str) -> Script:
    """What takes the space in a folder."""
    count = reading.count(question)
    return Script(
        name="folder-sizes",
        purpose=f"Shows the {count} folders that take the most space, largest first.",
        usage=FOLDER_USAGE,
        settings=(_folder(question),),
        report=(
            f'du -xk --max-depth=1 "$folder" 2> /dev/null | sort -rn | head -n {count} |',
            "  numfmt --from-unit=1024 --to=iec",
        ),
        keeps_going=True,
    )


def old_files(question: str) -> Script:
    """Files that were not changed for a while; removed only when that is said when it is started."""
    days = reading.days(question, 30)
    ending = reading.ending(question)
    only = f" -name '*.{ending}'" if ending else ""
    return Script(
        name="old-files",
        purpose=f"Lists files not changed for more than {days} days; with --delete it removes them.",
        usage="[FOLDER] [--delete]",
        settings=(
            _folder(question),
            f"days={days}",
            "action=-print",
            '[[ "${2:-}" == --delete ]] && action="-print -delete"',
        ),
        report=(
            "# Unquoted on purpose: it is one word or two.",
            f'find "$folder" -xdev -type f{only} -mtime "+$days" $action 2> /dev/null',
        ),
        keeps_going=True,
    )


def duplicates(question: str) -> Script:
    """Files with the same content."""
    return Script(
        name="duplicate-files",
        purpose="Lists files that have the same content, group by group.",
        usage=FOLDER_USAGE,
        settings=(_folder(question),),
        report=(
            'find "$folder" -xdev -type f -size +0 -exec sha256sum {} + 2> /dev/null |',
            "  sort | uniq -w 64 --all-repeated=separate | cut -c 67-",
        ),
        keeps_going=True,
    )


def containing(question: str) -> Script:
    """Files in which a text stands."""
    text = next(iter(reading.quoted(question)), "TODO")
    ending = reading.ending(question)
    only = f" --include='*.{ending}'" if ending else ""
    return Script(
        name="search-text",
        purpose="Shows the lines that contain a text, with file and line number.",
        usage="[FOLDER] [TEXT]",
        settings=(_folder(question), f"text={text}", 'text="${2:-$text}"'),
        report=(f'grep -rInF{only} -e "$text" -- "$folder"',),
        nothing='"Nothing contains it."',
        keeps_going=True,
    )


def replaced(question: str) -> Script:
    """One text put in place of another, in all files of a folder."""
    words = [*reading.quoted(question), "old", "new"] if len(reading.quoted(question)) < 2 else reading.quoted(question)
    ending = reading.ending(question)
    only = f" --include='*.{ending}'" if ending else ""
    return Script(
        name="replace-text",
        purpose="Replaces a text in all files of a folder, keeps each old file as FILE.bak, and names the files.",
        usage=FOLDER_USAGE,
        settings=(_folder(question), f"old={words[0]}", f"new={words[1]}"),
        report=(
            f"grep -rIlFZ{only} --exclude='*.bak' -e \"$old\" -- \"$folder\" | while IFS= read -r -d '' file; do",
            '  OLD="$old" NEW="$new" perl -i.bak -pe \'s/\\Q$ENV{OLD}\\E/$ENV{NEW}/g\' -- "$file"',
            "  printf '%s\\n' \"$file\"",
            "done",
        ),
        nothing='"No file contains it."',
        keeps_going=True,
    )


def line_count(question: str) -> Script:
    """How many lines the files of one kind have."""
    ending = reading.ending(question) or "py"
    return Script(
        name="count-lines",
        purpose=f"Counts the lines of all .{ending} files below a folder.",
        usage=FOLDER_USAGE,
        settings=(_folder(question),),
        report=(f"find \"$folder\" -type f -name '*.{ending}' -not -path '*/.git/*' -exec cat {{}} + | wc -l",),
    )


def backup(question: str) -> Script:
    """A folder in a dated archive, the newest ones kept."""
    keep = reading.count(question, 7)
    source = reading.folder(question, "$HOME/documents")
    return Script(
        name="backup",
        purpose=f"Packs a folder into a dated archive and keeps the newest {keep}.",
        usage="[FOLDER] [TARGET_FOLDER]",
        settings=(f'source="${{1:-{source}}}"', 'target="${2:-$HOME/backups}"', f"keep={keep}"),
        report=(
            'mkdir -p -- "$target"',
            'local name; name="$(basename -- "$source")"',
            'local archive; archive="$target/$name-$(date +%Y%m%d-%H%M%S).tar.gz"',
            'tar -czf "$archive" -C "$(dirname -- "$source")" -- "$name"',
            "printf 'wrote %s\\n' \"$archive\"",
            "# Names hold the date, so their order is that of their age.",
            'find "$target" -maxdepth 1 -type f -name "$name-*.tar.gz" | sort -r | tail -n "+$((keep + 1))" |',
            '  while IFS= read -r old; do rm -- "$old"; printf \'removed %s\\n\' "$old"; done',
        ),
    )


def writable(question: str) -> Script:
    """Files that anybody may change."""
    return Script(
        name="world-writable",
        purpose="Lists files that everybody on this machine may change.",
        usage=FOLDER_USAGE,
        settings=(_folder(question, "/"),),
        report=('find "$folder" -xdev -type f -perm -o+w 2> /dev/null',),
        nothing='"There is none."',
        keeps_going=True,
    )


def column_sum(question: str) -> Script:
    """The sum of a column of a table."""
    return Script(
        name="sum-column",
        purpose="Adds up one column of a CSV file whose fields hold no commas.",
        usage="[FILE] [COLUMN]",
        settings=(
            f'file="${{1:-{reading.file(question, "data.csv")}}}"',
            f'column="${{2:-{reading.count(question, 2)}}}"',
        ),
        report=('awk -F, -v column="$column" \'NR > 1 { sum += $column } END { print sum + 0 }\' "$file"',),
    )


def _folder(question: str, default: str = ".") -> str:
    return f'folder="${{1:-{reading.folder(question, default)}}}"'
