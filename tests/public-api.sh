#!/bin/bash
# tests/public-api.sh - compares the documented items of the library with tests/public-api.txt; with --update, writes that
# file anew. The items are those that `cargo doc` has pages for: each with its declaration, its methods and the traits
# that it implements. Automatic and blanket implementations (Send, Into) are not listed, nor are the hidden modules. The
# declarations are read from the pages as rustdoc writes them: a toolchain that writes them otherwise asks for an update.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
listing=tests/public-api.txt
pages=${CARGO_TARGET_DIR:-target}/doc/nicpin

# declarations PAGE: its declaration and the headers of its methods and implementations, as text. \x01 is a line's end
# within one of them.
declarations() {
  tr '\n' '\001' <"$1" | sed -e 's/<h2 id="synthetic-implementations".*//' |
    grep -oP '<pre class="rust item-decl">.*?</pre>|<h[34] class="code-header">.*?</h[34]>' |
    sed -e '/^<h/s/\x01 */ /g' -e 's/<summary class="hideme"><span>[^<]*<\/span><\/summary>//g' \
      -e 's/<div class="code-attribute">\([^<]*\)<\/div>/\1\x01/g' -e 's/<div class="where">/ /g' \
      -e 's/<[^>]*>//g' -e 's/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&#39;/'"'"'/g; s/&nbsp;/ /g; s/&amp;/\&/g' \
      -e 's/( \+/(/g; s/, *) ->/) ->/g' |
    grep -vE '^((unsafe )?fn|type) |^impl StructuralPartialEq' | tr '\001' '\n'
}

list() {
  local page
  for page in "$pages"/{fn,struct,enum,type,trait,constant,macro}.*.html; do
    [ ! -e "$page" ] || { declarations "$page" && echo; }
  done
}

rm -rf "$pages" # pages of items that are gone
RUSTDOCFLAGS="-D warnings" cargo doc --no-deps --locked --quiet
if [ "${1-}" = --update ]; then
  list >"$listing"
elif ! diff -u "$listing" <(list); then
  echo "the public items differ from $listing: if that is meant, run tests/public-api.sh --update" >&2
  exit 1
fi
echo "$(grep -cE '^pub (fn|struct|enum|type|trait|const)' "$listing") lines of public items as listed"
