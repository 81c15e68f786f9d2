# Draws the course of a metric loop, where lower is better: changes that were kept with the stair of the best, and those
# that were not. Input: iteration, metric or "-", outcome, description, between tabs.
BEGIN {
  FS = "\t"; width = 760; height = 330; left = 70; right = 20; top = 20; bottom = 40
  cap = 40000 # what is above stands at the top edge, with its number
}
/^#/ { next }
{ n++; x[n] = $1; value[n] = $2; outcome[n] = $3; text[n] = $4; last = $1 }
function px(i) { return left + (width - left - right) * i / (last + 0.6) + 14 }
function py(v) { if (v > cap) v = cap; return top + (height - top - bottom) * (cap - v) / (cap - 20000) }
function label(at_x, at_y, words, anchor, class) {
  printf "<text class=\"%s\" x=\"%.0f\" y=\"%.0f\" text-anchor=\"%s\" font-size=\"11\">%s</text>\n", class, at_x, at_y, anchor, words
}
END {
  printf "<svg width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" xmlns=\"http://www.w3.org/2000/svg\">\n", width, height, width, height
  for (v = 20000; v <= cap; v += 5000) {
    printf "<g class=\"edge\"><path stroke-opacity=\".25\" d=\"M%d,%.0f H%d\"/></g>\n", left, py(v), width - right
    label(left - 8, py(v) + 4, v, "end", "axis")
  }
  best = value[1]; path = sprintf("M%.0f,%.0f", px(0), py(best))
  for (i = 2; i <= n; i++) {
    path = path sprintf(" H%.0f", px(x[i]))
    if (outcome[i] == "kept") { best = value[i]; path = path sprintf(" V%.0f", py(best)) }
  }
  printf "<g class=\"edge good\"><path style=\"fill:none;stroke-width:2.5\" d=\"%s H%d\"/></g>\n", path, width - right
  for (i = 1; i <= n; i++) {
    at_x = px(x[i])
    label(at_x, height - bottom + 18, x[i], "middle", "axis")
    if (value[i] == "-") {
      printf "<g class=\"edge bad\"><path d=\"M%.0f,%.0f l8,8 m0,-8 l-8,8\" style=\"stroke-width:2\"/></g>\n", at_x - 4, height - bottom - 16
      label(at_x, height - bottom - 22, outcome[i], "middle", "")
      continue
    }
    class = outcome[i] == "discarded" ? "bad" : "good"
    printf "<g class=\"node %s\"><ellipse cx=\"%.0f\" cy=\"%.0f\" rx=\"5\" ry=\"5\"/></g>\n", class, at_x, py(value[i])
    over = value[i] > cap ? " (" value[i] ")" : ""
    label(i == n ? width - right : at_x + 9, py(value[i]) - 8, text[i] over, i == n ? "end" : "start", "")
  }
  label((left + width) / 2, height - 4, "iteration", "middle", "axis")
  print "</svg>"
}
