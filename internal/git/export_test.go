package git

// Escapes is tested directly, because no exported function uses it without a repository.
var Escapes = escapes
