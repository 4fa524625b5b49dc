# shellcheck shell=sh
# How `apply` and `undo` write to a host. Whatever ends them, a file is its old or its new contents as a whole,
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

# Where a path leads below the tree, through each link as the host itself would follow it.
real() {
    rest=$1 at="" links=0
    while [ -n "$rest" ]; do
        part=${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest="" ;; esac
        case $part in
            "" | .) ;;
            ..) at=${at%/*} ;;
            *)
                if [ -L "$root$at/$part" ]; then
                    links=$((links + 1))
                    [ "$links" -le 40 ] && link=$(readlink "$root$at/$part") || return 1
                    case $link in /*) at="" ;; esac
                    rest=$link/$rest
                else
                    at=$at/$part
                fi
                ;;
        esac
    done
    echo "$at"
}

# Sets `path` to the file that a place leads to, and `beside` to where its next contents are written.
find_place() {
    path=$(real "$1") || { trouble "left $1 alone: its links lead in a circle"; return 1; }
    beside=$root${path%/*}/.${path##*/}.dyno
    rm -f "$beside" saved/part saved/next saved/ours || return 1
    [ ! -e "$root$path" ] || [ -f "$root$path" ] || { trouble "left $1 alone: it is no file"; return 1; }
}

owner() { stat -c %u:%g "$1"; }

# The next contents beside a file, with its owner, mode and attributes. A file of mode 0444 is written too.
fill_beside() {
    if [ -e "$root$path" ]; then
        mode=$(stat -c %a "$root$path") && copy "$root$path" "$beside" || return 1
        [ "$(owner "$beside")" = "$(owner "$root$path")" ] || { trouble "cannot keep the owner of $path"; return 1; }
        chmod u+w "$beside" && cat "$1" >"$beside" && chmod "$mode" "$beside"
    else
        (umask 022 && mkdir -p "$root${path%/*}") && cat "$1" >"$beside" && chmod 644 "$beside"
    fi
}

# Gives the file its next contents, at once.
replace() {
    if fill_beside "$1" && sync "$beside" && mv -f "$beside" "$root$path"; then
        sync_folder "$root${path%/*}"
    else
        rm -f "$beside"
        return 1
    fi
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
