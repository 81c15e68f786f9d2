// Package repository tests real-life repositories: unusual ones, large ones, remote ones, and ones that change or
// disappear while a loop runs.
package repository
