package sandbox

// Bubblewrap finds bwrap and tries it.
var Bubblewrap = bubblewrap

// BoundsName is what the cgroups of a token are called.
var BoundsName = boundsName
