package engine

// Opened is an error where this process has not opened the database at a path.
func Opened(path string) error { return database{path}.opened() }
