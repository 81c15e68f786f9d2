package seal

// Words are the shell words of a command as the search for sealed files sees them: without quotes and
// operators, those of a substitution after those of the command that it stands in.
func Words(command string) (words []string) {
	for _, c := range parseShell(command, "", nil) {
		for _, w := range c.all {
			words = append(words, w.text)
		}
	}
	return words
}
