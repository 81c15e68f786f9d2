package git

// Escapes is tested by itself: no exported function shows it without a repository.
var Escapes = escapes
