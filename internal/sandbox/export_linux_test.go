package sandbox

// Bubblewrap finds bwrap and tries it.
var Bubblewrap = bubblewrap
