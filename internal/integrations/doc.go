// Package integrations is the room for what pawl connects to besides git, agents and Temporal's own API.
//
// Sub-rooms: notify (webhooks, the desktop, commands, when somebody is needed), forge (open work and CI status of a
// project, from GitHub), schedule (a steward's schedules, kept in Temporal), trigger (the HTTP endpoint that hands
// tasks to stewards), health (checks of a command or an address).
//
// Start at the package of the thing that you connect: notify.Send for a new channel of notification.
//
// Nothing here decides when and whom to tell, or what follows from an answer, and nothing tries twice: workflows and
// internal/steward do.
package integrations
