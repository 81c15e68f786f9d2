// Package modules runs loops on public modules that others wrote.
package modules
