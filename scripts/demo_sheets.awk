# The JSON of `aha compare` as text or as parts of a page (form=text|html): each image with class, probability and the scores of its maps.
function value(line) {
  sub(/^[^:]*: /, "", line); sub(/,$/, "", line); gsub(/"/, "", line)
  return line
}
/^ *"name":/ { name = value($0) }
/^ *"probability":/ { probability = value($0) }
/^ *"file":/ { file = value($0) }
/^ *"image":/ { image = value($0); sub(/.*\//, "", image); rows = 0 }
/^ *"deletion":/ { deletion = value($0) }
/^ *"insertion":/ { insertion = value($0) }
/^ *"method":/ { method[rows] = value($0); ins[rows] = insertion; del[rows++] = deletion }
/^ *"references":/ {
  if (form == "text") {
    printf "%s: %s, probability %.3f -> %s\n", image, name, probability, file
    for (i = 0; i < rows; ++i) printf "  %-16s insertion %.3f  deletion %.3f  ins-del %+.3f\n", method[i], ins[i], del[i], ins[i] - del[i]
  } else {
    sub(/^demo\//, "", file)
    printf "<section><h3>%s<span>%s, probability %.3f</span></h3>\n", image, name, probability
    printf "<div class=\"wide\"><a href=\"%s\"><img loading=\"lazy\" alt=\"maps of %s\" src=\"%s\"></a></div>\n", file, image, file
    printf "<details><summary class=\"soft\">Scores</summary><table><tr><th>method</th><th>insertion ↑</th><th>deletion ↓</th><th>ins-del ↑</th></tr>\n"
    for (i = 0; i < rows; ++i) printf "<tr><td>%s</td><td>%.3f</td><td>%.3f</td><td>%.3f</td></tr>\n", method[i], ins[i], del[i], ins[i] - del[i]
    print "</table></details></section>"
  }
}
