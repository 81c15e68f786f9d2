# Checks that every sentence that a customer needs is there, and that every open tag is closed.
set -e
for text in "Bakery at the Mill" "Bread since 1904" "Tuesday to Saturday, 6 to 13" "Mill Lane 7" "Rye, 1 kg" "Spelt, 750 g"; do
  grep -q "$text" src/index.html || { echo "missing: $text"; exit 1; }
done
for tag in html head body h1 ul p; do
  [ "$(grep -o "<$tag[ >]" src/index.html | wc -l)" -eq "$(grep -o "</$tag>" src/index.html | wc -l)" ] || { echo "not closed: $tag"; exit 1; }
done
