package govern

// AlteredAdvice says what to do about a command that passes, but changes tracked files of the commit that it judges.
func AlteredAdvice(key string) string {
	return "A passing " + key + " must have judged the commit as it is. Let " + key + ".command only check (eslint without --fix, gofmt -l, cargo --locked), " +
		"or commit what it writes."
}

// AdviceFor returns the advice for a command that fails on the unchanged code: usual, unless it has changed files.
func AdviceFor(key string, altered []string, usual string) string {
	if len(altered) > 0 {
		return AlteredAdvice(key)
	}
	return usual
}
