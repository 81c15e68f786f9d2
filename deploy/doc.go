// Package deploy is what the compose file runs in containers: entrypoint scripts and the Temporal server's dynamic
// configuration. It has no code, only tests. They check that all files and variables exist that the compose file uses,
// and that the scripts do what they say. Start at ../docker-compose.yml.
package deploy
