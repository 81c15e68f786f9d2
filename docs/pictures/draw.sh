#!/bin/sh
# Draws the pictures of this folder from their sources: NAME.dot with Graphviz, NAME.tsv with course.awk. Each picture
# names the sum of its sources, so that a test can tell when somebody has to draw it again.
set -e
cd "$(dirname "$0")"
for source in *.dot *.tsv; do
  name=${source%.*}
  sum=$(cat "$source" style.css | sha256sum | cut -c1-16)
  case $source in
  *.dot) dot -Tsvg "$source" ;;
  *.tsv) awk -f course.awk "$source" ;;
  esac | awk -v sum="$sum" '
    /^<\?xml|^<!|^ "http|^<!--|^ -->/ { next }                       # which version drew it is of no interest
    /<polygon fill="white" stroke="(white|transparent|none)"/ { next } # the background
    /<title>/ { next }                                           # tooltips such as a&#45;&gt;b
    { print }
    /<svg/ { open = 1 }
    open && />/ {
      open = 0
      print "<!-- drawn by docs/pictures/draw.sh from " sum " -->"
      print "<style>"
      while ((getline line < "style.css") > 0) print line
      print "</style>"
    }' >"$name.svg"
done
