// Package proposals tests what becomes of a loop's work: proposals, their review, applying them, and the record of it.
package proposals
