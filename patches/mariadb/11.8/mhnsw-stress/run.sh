#!/bin/sh
# Builds stress.cc around a vector_mhnsw.cc, and runs it:
#   run.sh SOURCE SANITIZER ARGUMENTS...        SOURCE has sql/ and include/; SANITIZER is thread, address, or none
# GPL-2.0, as the file that it tests.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
source=$1 sanitizer=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The includes are the server's, and what follows this line declares a plugin.
sed -e '/^#include/d' -e '/Declare the plugin and index options/,$d' "$source/sql/vector_mhnsw.cc" > "$work/text"
sed -i '$d' "$work/text"
{
    printf '#include "%s"\n' "$source/include/scope.h" "$source/include/my_atomic_wrapper.h" \
        "$source/sql/bloom_filters.h"
    cat "$work/text"
} > "$work/mhnsw.inc"
case $sanitizer in
none) flags="-O2 -DNDEBUG" ;;
*) flags="-O1 -g -fsanitize=$sanitizer -fno-omit-frame-pointer" ;;
esac
# The last patch of the series counts evictions.
if grep -q cache_status "$work/text"; then flags="$flags -DHAS_STATUS"; fi
# shellcheck disable=SC2086
${CXX:-g++} -std=c++17 -pthread -w $flags -I"$work" -I"$here" "$here/stress.cc" -o "$work/stress"
"$work/stress" "$@"
