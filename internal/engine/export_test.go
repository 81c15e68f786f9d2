package engine

// Opened returns an error if this process has not opened the database at a path.
func Opened(path string) error { return database{path}.opened() }
