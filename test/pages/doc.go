// Package pages runs the documents: each command that a page shows is typed, and what it prints is compared.
package pages
