// Package text is the room for text that people read.
//
// Sub-rooms: visible (writes out what people could not see), markdown (puts other people's text into Markdown),
// excerpt (the beginning of a diff).
//
// Everything here is pure, and none of it decides anything by what a text says.
package text
