// Package deploy is what the compose file runs in containers: entrypoint scripts and the Temporal
// server's dynamic configuration. It has no code, only tests: that every file and variable that is
// referred to is there, and that the scripts do what they say. Start at ../docker-compose.yml.
package deploy
