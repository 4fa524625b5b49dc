#!/bin/sh
# shellcheck shell=sh
# Where a place on a host is. Below a folder that another account may write, no link is followed: that account
# could have any file of the host written or read. `apply`, `undo` and `check` source this. As a program it
# says `own` for a place that only root and this account lead to, and `shared` for another.

# Who may write in a folder, beside root and this account; nothing where nobody may. For a shell of its own.
stranger() {
    IFS=" "
    # shellcheck disable=SC2046  # numbers, letters and names of accounts
    set -- $(stat -c '%u %g %A %U %G' "$1")
    if [ "$1" != 0 ] && [ "$1" != "$(id -u)" ]; then echo "the account $4"; return; fi
    case $3 in ?????w*) if [ "$2" != 0 ] && [ "$2" != "$(id -g)" ]; then echo "the group $5"; return; fi ;; esac
    case $3 in ????????w*) echo "everybody" ;; esac
}

# Sets `at` to where a path leads below the tree, through each link as the host itself would follow it, and
# `whose` to who may write a folder on the way. Where it leads nowhere, `why` says so.
real() {
    rest=$1 at="" links=0 whose="" why=""
    while [ -n "$rest" ]; do
        part=${rest%%/*}
        case $rest in */*) rest=${rest#*/} ;; *) rest="" ;; esac
        case $part in
            "" | .) ;;
            ..) at=${at%/*} ;;
            *)
                [ -n "$whose" ] || [ ! -d "$root$at/" ] || whose=$(stranger "$root$at/") || return 1
                if [ -L "$root$at/$part" ]; then
                    [ -z "$whose" ] || { why="$at/$part is a link, and $whose may write in $at"; return 1; }
                    links=$((links + 1))
                    [ "$links" -le 40 ] || { why="its links lead in a circle"; return 1; }
                    link=$(readlink "$root$at/$part") || return 1
                    case $link in /*) at="" ;; esac
                    rest=$link/$rest
                else
                    at=$at/$part
                fi
                ;;
        esac
    done
}

if [ "${0##*/}" = place.sh ]; then
    root="" at=""
    real "$1" || { echo "left $1 alone: $why" >&2; exit 1; }
    [ ! -e "$at" ] || [ -f "$at" ] || { echo "left $1 alone: it is no file" >&2; exit 1; }
    if [ -n "$whose" ]; then echo shared; else echo own; fi
fi
