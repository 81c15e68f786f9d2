package sandbox

// Bubblewrap finds bwrap where it works, for tests of what is only a fallback.
var Bubblewrap = bubblewrap
