package sandbox

// Bubblewrap finds bwrap and tries it.
var Bubblewrap = bubblewrap

// BoundsName returns the name of a token's cgroups.
var BoundsName = boundsName
