# shellcheck shell=sh
# How `apply` and `undo` write to a host, and how `check` reads its files. Whatever ends them, a file is its old or its new contents as a whole,
# and the folder `saved` keeps what was there before:
#   before/PATH   the file as it was; none/PATH where there was none
#   written/PATH  what `apply` wrote: a file, or the block of one that has other lines; writing/PATH meanwhile
#   values/PATH   a value of the kernel as it was, and on the next lines those that `apply` has set
#   root          the tree that was changed
# A step that fails says so. The script goes on with the next one, and ends with 1.
# Where a shell asks for the status of a function, `set -e` holds nowhere in it: so each step asks by itself.
umask 077
export LC_ALL=C
program=${0##*/} failed=0
here=$(pwd -P)
there=$here/saved/there
# shellcheck source=SCRIPTDIR/place.sh
. ./place.sh
tab=$(printf '\t')
root=${DESTDIR:-}
root=${root%/}
case $root in "" | /*) ;; *) root=$OLDPWD/$root ;; esac

# The rows of one kind, without their first column.
rows() { sed -n "s|^$1$tab||p" recipe.tsv; }

# The value in force, in brackets where a file offers a choice.
value() { sed 's/.*\[\(.*\)\].*/\1/' "$1"; }

# Says what is not done. `apply` and `undo` end with `failed`.
trouble() {
    echo "$program: $1" >&2
    # shellcheck disable=SC2034
    failed=1
}

stop() {
    echo "$program: $1" >&2
    exit 1
}

# A folder `saved` of one tree would overwrite the files of another.
require_tree() {
    [ -r recipe.tsv ] || stop "recipe.tsv cannot be read"
    [ -n "$root" ] || [ "$(id -u)" = 0 ] || stop "run it as root, or name a tree by DESTDIR"
    [ ! -e saved/root ] || [ "$(cat saved/root)" = "$root" ] ||
        stop "apply has changed the tree '$(cat saved/root)' from this folder; give it as DESTDIR, or copy the recipe"
}

sync_folder() { sync "$1" 2>/dev/null || sync; }

# Copies a file with all that the copying program can keep: owner, mode, attributes, label.
copy() {
    rm -f "$2" && { cp --preserve=all "$1" "$2" 2>/dev/null || { rm -f "$2" && cp -p "$1" "$2"; }; }
}

# Makes saved/part a file of `saved`.
settle() {
    mkdir -p "saved/${1%/*}" && sync saved/part && mv -f saved/part "saved/$1" && sync_folder "saved/${1%/*}"
}

# Goes to the folder of `path`, by one step after another, and stays there whoever renames a folder meanwhile.
# With `make` it makes what is not there. To be called in a shell of its own.
enter() {
    cd -P "${root:-/}" || return 1
    place=$(pwd -P) rest=${path%/*}
    place=${place%/}
    while [ -n "$rest" ]; do
        part=${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest="" ;; esac
        [ -n "$part" ] || continue
        [ "$1" != make ] || [ -d "./$part" ] || (umask 022 && mkdir "./$part") || return 1
        cd -P "./$part" || return 1
        place=$place/$part
        [ "$(pwd -P)" = "$place" ] || { echo "$program: $place is a link by now" >&2; return 1; }
    done
}

inside() (enter go && "$@")

# Copies what lies at `path` as it is, without following a link.
take() {
    { cp -PR --preserve=all "./$name" "$there" 2>/dev/null || { rm -rf "$there" && cp -PRp "./$name" "$there"; }; }
}

# Sets `path` to the file that a place leads to, and makes `there` a copy of it; none where there is no file.
# Only the copy is looked at.
find_place() {
    real "$1" || { trouble "left $1 alone: ${why:-it cannot be read}"; return 1; }
    path=$at name=${at##*/}
    rm -rf "$there" "$here/saved/part" "$here/saved/next" "$here/saved/ours" || return 1
    [ -d "$root${path%/*}/" ] || return 0
    # What a killed script left.
    [ "$program" = check ] || inside rm -rf "./.$name.dyno" || return 1
    [ -e "$root$path" ] || [ -L "$root$path" ] || return 0
    if [ -f "$root$path" ] && inside take && [ -f "$there" ] && [ ! -L "$there" ]; then return; fi
    rm -rf "$there"
    trouble "left $1 alone: it is no file, or cannot be read"
    return 1
}

owner() { stat -c %u:%g "$1"; }

# Writes the next contents of a file in a folder beside it that nobody else can enter, with the owner, mode and
# attributes of the file, and renames it to its place. A file of mode 0444 is written too.
write_beside() {
    mkdir -m 700 "./.$name.dyno" && cd -P "./.$name.dyno" || return 1
    if [ "$(pwd -P)" != "$place/.$name.dyno" ] || [ "$(stat -c %u .)" != "$(id -u)" ]; then return 1; fi
    if [ -e "$there" ]; then
        copy "$there" next && mode=$(stat -c %a "$there") || return 1
        [ "$(owner next)" = "$(owner "../$name")" ] || { echo "$program: cannot keep the owner of $path" >&2; return 1; }
        chmod u+w next && cat "$1" >next && chmod "$mode" next || return 1
    else
        cat "$1" >next && chmod 644 next || return 1
    fi
    sync next && mv -f -T next "../$name" && cd -P .. && rmdir "./.$name.dyno" && sync_folder .
}

# Gives the file its next contents, at once.
replace() {
    (enter make && write_beside "$here/$1") || { [ ! -d "$root${path%/*}/" ] || inside rm -rf "./.$name.dyno"; return 1; }
}

remove() { rm -f "./$name" && sync_folder .; }

# Whether a value of the kernel may be written: nobody can lead its path elsewhere.
is_safe() {
    if real "$1" && [ -z "$whose" ]; then return; fi
    trouble "left $1 alone: ${why:-$whose may write a folder on its way}"
    return 1
}

same() { cmp -s "$1" "$2" 2>/dev/null; }

# Whether contents are those that `apply` wrote to a place.
is_ours() { same "$2" "saved/written$1" || same "$2" "saved/writing$1"; }

# The marks of a file in their order: `be` where it has one block.
marks() {
    [ ! -e "$1" ] ||
        awk '/^# begin dyno[ \t\r]*$/ { printf "b" } /^# end dyno[ \t\r]*$/ { printf "e" }' "$1"
}

# The lines of a file inside of its block, or outside of it.
lines() {
    [ ! -e "$2" ] || awk -v wanted="$1" '/^# begin dyno[ \t\r]*$/ { is = "inside"; next }
        /^# end dyno[ \t\r]*$/ { is = ""; next }
        (is == "inside") == (wanted == "inside")' "$2"
}

# A block, and the other lines of a file, which follow it or go before it.
with_block() {
    case $1 in
        first) block "$2" && lines outside "$3" ;;
        *) lines outside "$3" && block "$2" ;;
    esac
}

block() { echo "# begin dyno" && cat "$1" && echo "# end dyno"; }
