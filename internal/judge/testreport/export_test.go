package testreport

// FormatNames returns the names of all formats.
func FormatNames() (names []string) {
	for _, f := range formats {
		names = append(names, f.name)
	}
	return names
}
