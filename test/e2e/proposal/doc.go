// Package proposal tests what happens with a loop's work: proposals, their review, applying them, and their record.
package proposal
