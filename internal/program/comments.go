package program

// uncommented returns JSON without the comments and last commas that people may write into programs' settings.
func uncommented(text []byte) []byte {
	out := make([]byte, 0, len(text))
	comma := -1 // the index of the last comma, if only space follows it
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '"':
			from := i
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
			out, comma = append(out, text[from:min(i+1, len(text))]...), -1
		case c == '/' && i+1 < len(text) && text[i+1] == '/':
			for i < len(text) && text[i] != '\n' {
				i++
			}
		case c == '/' && i+1 < len(text) && text[i+1] == '*':
			for i += 2; i+1 < len(text) && (text[i] != '*' || text[i+1] != '/'); {
				i++
			}
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			out = append(out, c)
		default:
			if comma >= 0 && (c == '}' || c == ']') {
				out[comma] = ' '
			}
			if comma = -1; c == ',' {
				comma = len(out)
			}
			out = append(out, c)
		}
	}
	return out
}
