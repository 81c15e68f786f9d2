// Package repositories tests repositories as people have them: unusual ones, large ones, remote ones, and ones that change
// or go away while a loop runs.
package repositories
