#!/bin/bash
# pictures.sh - images of what `nicpin draw` makes of the machines in the tests, light and dark, by a real browser.
# They go to target/pictures, for eyes: nothing compares them. After `cargo test --test it -- pictures::`, which writes the SVGs.
# Needs chromium; where there is none, that is said and nothing is made.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
TARGET=${CARGO_TARGET_DIR:-target}
FROM=$TARGET/tmp/pictures
TO=$TARGET/pictures

browser=
for name in chromium chromium-browser google-chrome; do
  browser=$(command -v $name) && break
done
if [ -z "$browser" ]; then
  echo "########################################################################"
  echo "##  NO IMAGES WERE MADE OF THE PICTURES: chromium is not here"
  echo "########################################################################"
  exit 0
fi
[ -d "$FROM" ] || { echo "pictures.sh: no pictures in $FROM: cargo test --test it -- pictures:: writes them" >&2; exit 1; }
mkdir -p "$TO"
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT

side() { sed -n "1s/.* $1=\"\([0-9]*\)\".*/\1/p" "$2"; }
made=0
for svg in "$FROM"/*.svg; do
  for scheme in light dark; do
    image=$TO/$(basename "$svg" .svg)-$scheme.png
    options=(--headless --no-sandbox --disable-gpu --hide-scrollbars "--user-data-dir=$profile/$scheme"
      "--window-size=$(side width "$svg"),$(side height "$svg")" "--screenshot=$(readlink -m "$image")")
    if [ $scheme = dark ]; then options+=(--blink-settings=preferredColorScheme=0 --force-dark-mode); fi
    rm -f "$image"
    timeout 120 "$browser" "${options[@]}" "file://$(readlink -f "$svg")" > "$profile/log" 2>&1 ||
      { cat "$profile/log" >&2; echo "pictures.sh: $svg: the browser failed" >&2; exit 1; }
    [ -s "$image" ] || { cat "$profile/log" >&2; echo "pictures.sh: $image was not made" >&2; exit 1; }
    made=$((made + 1))
  done
done
echo "$made images in $TO"
